import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { addressOf, syscall, trySyscall } from '../../daemon/kernel/ffi.ts'
import { NR } from '../../daemon/kernel/uapi/syscalls.ts'

/** Few names, so that operations meet each other. */
const NAMES = ['a', 'b', 'd', 'd/a', 'd/b', 'd/e', 'd/e/a', 'e', 'e/a', 'n', 'n/a'] as const
const TARGETS = ['a', 'e', 'nowhere'] as const

export interface Operation {
  verb: keyof typeof VERBS
  path: string
  /** Second path of a rename or a link. */
  other: string
  text: string
  number: number
}

export const operations = fc.array(
  fc.record<Operation>({
    verb: fc.constantFrom(...(Object.keys(verbs()) as Operation['verb'][])),
    path: fc.constantFrom(...NAMES),
    other: fc.constantFrom(...NAMES),
    text: fc.string({ minLength: 1, maxLength: 8 }),
    number: fc.nat(7),
  }),
  { minLength: 1, maxLength: 14 },
)

/** What the sequences start from; its times lie in the past. */
export function makeBase(root: string): void {
  for (const dir of ['d', 'd/e', 'e']) fs.mkdirSync(join(root, dir))
  for (const file of ['a', 'd/a', 'd/e/a']) fs.writeFileSync(join(root, file), `base ${file}`)
  fs.symlinkSync('a', join(root, 'd/b'))
  for (const name of ['a', 'd/a', 'd/e/a', 'd/b', 'd/e', 'd', 'e', '']) {
    if (name === 'd/b') fs.lutimesSync(join(root, name), 1000, 1000)
    else fs.utimesSync(join(root, name), 1000, 1000)
  }
}

/** Runs one operation as a program would; the errno is part of what must be the same. */
export function perform(root: string, operation: Operation): string {
  const at = join(root, operation.path)
  const other = join(root, operation.other)
  try {
    VERBS[operation.verb](at, other, operation)
    return 'ok'
  } catch (error) {
    return (error as { code?: string }).code ?? String(error)
  }
}

type Verb = (at: string, other: string, operation: Operation) => void
const VERBS = verbs()

function verbs() {
  return {
    create: (at, _, { text }) => fs.writeFileSync(at, text, { flag: 'wx' }),
    write: (at, _, { text }) => fs.writeFileSync(at, text, { flag: 'r+' }),
    append: (at, _, { text }) => fs.appendFileSync(at, text, { flag: 'r+' }),
    truncate: (at, _, { number }) => fs.truncateSync(at, number),
    mapped: (at, _, { text }) => writeMapped(at, text),
    openOnly: (at) => fs.closeSync(fs.openSync(at, 'r+')),
    mkdir: (at) => fs.mkdirSync(at),
    rename,
    unlink: (at) => fs.unlinkSync(at),
    rmdir: (at) => fs.rmdirSync(at),
    recreate: (at) => {
      fs.rmSync(at, { recursive: true })
      fs.mkdirSync(at)
    },
    symlink: (at, _, { number }) => fs.symlinkSync(TARGETS[number % 3] ?? 'a', at),
    link: (at, other) => fs.linkSync(at, other),
    chmod: (at, _, { number }) => fs.chmodSync(at, 0o600 | number),
    chown: (at, _, { number }) => fs.lchownSync(at, number, number),
    utimes: (at, _, { number }) => fs.lutimesSync(at, 2000 + number, 2000 + number),
    setxattr: (at, _, { text }) =>
      attribute(at, ['-n', 'user.model', '-v', `0x${Buffer.from(text).toString('hex')}`]),
    removexattr: (at) => attribute(at, ['-x', 'user.model']),
  } satisfies Record<string, Verb>
}

/** `mv`: where a directory of the base cannot be renamed inside an overlay, it is copied and removed. */
function rename(at: string, other: string): void {
  // Which error comes first for a directory that moves into itself differs between filesystems.
  if (`${other}/`.startsWith(`${at}/`)) return
  if (fs.lstatSync(at).isDirectory() && fs.lstatSync(other, { throwIfNoEntry: false }) !== undefined) return
  try {
    fs.renameSync(at, other)
  } catch (error) {
    if ((error as { code?: string }).code !== 'EXDEV') throw error
    execFileSync('mv', ['-T', at, other])
  }
}

function attribute(at: string, args: readonly string[]): void {
  if (fs.lstatSync(at).isSymbolicLink()) return
  try {
    execFileSync('setfattr', [...args, at], { stdio: 'ignore' })
  } catch {
    throw Object.assign(new Error('setfattr'), { code: 'ENODATA' })
  }
}

/** Changes the first bytes through a shared mapping: no write(2) ever happens. */
function writeMapped(at: string, text: string): void {
  const fd = fs.openSync(at, 'r+')
  try {
    const bytes = Buffer.from(text).subarray(0, fs.fstatSync(fd).size)
    if (bytes.length === 0) return
    const [protection, shared] = [3, 1]
    // SAFETY: a fresh mapping of the file, removed below; nothing in this process points into it.
    const address = BigInt(syscall('mmap', NR.mmap, 0, 4096, protection, shared, fd, 0))
    const [from, to] = [Buffer.alloc(16), Buffer.alloc(16)]
    from.writeBigUInt64LE(addressOf(bytes), 0)
    from.writeBigUInt64LE(BigInt(bytes.length), 8)
    to.writeBigUInt64LE(address, 0)
    to.writeBigUInt64LE(BigInt(bytes.length), 8)
    // SAFETY: both vectors describe memory of this process that lives until the call returns.
    const copied = trySyscall(NR.process_vm_writev, process.pid, from, 1, to, 1, 0)
    syscall('munmap', NR.munmap, address, 4096)
    if (copied !== bytes.length) throw new Error(`process_vm_writev: ${copied}`)
  } finally {
    fs.closeSync(fd)
  }
}
