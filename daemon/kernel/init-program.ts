import { closeSync, readFileSync, writeSync } from 'node:fs'
import { constants } from 'node:os'
import { nativeFile } from './clone.ts'
import { cstring, KernelError, syscall, trySyscall } from './ffi.ts'
import {
  F_ADD_SEALS,
  F_SEAL_GROW,
  F_SEAL_SEAL,
  F_SEAL_SHRINK,
  F_SEAL_WRITE,
  MFD_ALLOW_SEALING,
  MFD_CLOEXEC,
  MFD_EXEC,
  NR,
} from './uapi/index.ts'

let descriptor: number | undefined

/**
 * The static PID 1 (native/init.c) as a sealed, close-on-exec memory file for `execveat(fd, "", AT_EMPTY_PATH)`. Made once
 * per process and shared: nobody, not even a root in the branch, can write into it through /proc/1/exe.
 */
export function initExecutable(): number {
  descriptor ??= sealedCopy(nativeFile('init'))
  return descriptor
}

function sealedCopy(file: string): number {
  const content = readFileSync(file)
  const memory = memoryFile('puzzled-init')
  try {
    if (writeSync(memory, content) !== content.length)
      throw new KernelError('write', constants.errno.ENOSPC, [file])
    const seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE
    // SAFETY: integers only.
    syscall('fcntl', NR.fcntl, memory, F_ADD_SEALS, seals)
  } catch (error) {
    closeSync(memory)
    throw error
  }
  return memory
}

function memoryFile(name: string): number {
  const flags = MFD_CLOEXEC | MFD_ALLOW_SEALING
  const text = cstring(name)
  // SAFETY: `text` ends in NUL and lives until the call returns.
  const descriptor = trySyscall(NR.memfd_create, text, flags | MFD_EXEC)
  if (descriptor !== -constants.errno.EINVAL && descriptor >= 0) return descriptor
  // SAFETY: as above. Kernels before 6.3 refuse MFD_EXEC, and make executable files without being asked.
  return syscall('memfd_create', NR.memfd_create, text, flags)
}
