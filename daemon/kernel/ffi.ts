import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type koffi from 'koffi'
import { PuzzledError } from '../lib/errors.ts'
import { errnoName } from './errno.ts'

type Koffi = typeof koffi
export type LibraryHandle = ReturnType<Koffi['load']>

let loaded: Koffi | undefined

/** koffi is loaded on first use: `puzzlectl --help` and everything without kernel calls must not pay for it (8 ms). */
export function ffi(): Koffi {
  loaded ??= nativeKoffi() ?? (createRequire(import.meta.url)('koffi') as Koffi)
  return loaded
}

/** The one that `package.json` names; another one is left to what knows about it. */
export const KOFFI_VERSION = '3.3.4'

/**
 * The library itself, where `require('koffi')` would find it. On the way there that resolves three packages, reads the
 * head of Node's program and wraps calls that nobody here makes: more than half of what loading it takes.
 */
export function nativeKoffi(): Koffi | undefined {
  const { platform, arch } = process
  const inPackages = join('node_modules', '@koromix', `koffi-${platform}-${arch}`, `${platform}_${arch}`)
  let folder = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(folder, inPackages, 'koffi.node'))) {
    if (dirname(folder) === folder) return undefined
    folder = dirname(folder)
  }
  try {
    const found = createRequire(import.meta.url)(join(folder, inPackages, 'koffi.node')) as Koffi
    return found.version === KOFFI_VERSION ? found : undefined
  } catch {
    // Another C library than it was made for: the package has more of them.
    return undefined
  }
}

/** A system call that failed. `errnoName` is `E…`; `args` are for people. */
export class KernelError extends Error {
  override readonly name = 'KernelError'
  readonly call: string
  readonly errno: number
  readonly errnoName: string
  readonly args: readonly unknown[]

  constructor(call: string, errno: number, args: readonly unknown[] = []) {
    const shown = args.map(showArgument).join(', ')
    super(`${call}(${shown}): ${errnoName(errno)}`)
    this.call = call
    this.errno = errno
    this.errnoName = errnoName(errno)
    this.args = args
  }
}

function showArgument(value: unknown): string {
  if (value instanceof Uint8Array) {
    const end = value.indexOf(0)
    return JSON.stringify(
      Buffer.from(end < 0 ? value : value.subarray(0, end))
        .toString('utf8')
        .slice(0, 200),
    )
  }
  return typeof value === 'string' ? JSON.stringify(value) : String(value)
}

export type SysArg = number | bigint | Uint8Array | null

type RawSyscall = (nr: number, ...args: (number | bigint)[]) => number | bigint
let rawSyscall: RawSyscall | undefined

function syscallFunction(): RawSyscall {
  rawSyscall ??= ffi()
    .load('libc.so.6')
    .func(
      'long syscall(long nr, int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f)',
    ) as RawSyscall
  return rawSyscall
}

/** Address of a byte array. It stays valid while the array is referenced: backing stores do not move. */
export const addressOf = (bytes: Uint8Array): bigint => ffi().address(bytes) as bigint

const toWord = (arg: SysArg): number | bigint =>
  typeof arg !== 'object' ? arg : arg === null || arg.byteLength === 0 ? 0 : addressOf(arg)

/**
 * One raw system call on the calling thread; the result is the return value, or the negative errno.
 * Byte arrays are passed by address: strings must already end in NUL (`cstring`).
 */
export function trySyscall(
  nr: number,
  a: SysArg = 0,
  b: SysArg = 0,
  c: SysArg = 0,
  d: SysArg = 0,
  e: SysArg = 0,
  f: SysArg = 0,
): number {
  // SAFETY: synchronous on the calling thread; the parameters keep every array alive until the call returns; libc's
  // syscall() is variadic but takes only register-sized words, which both ABIs pass alike. errno is read at once.
  const result = syscallFunction()(nr, toWord(a), toWord(b), toWord(c), toWord(d), toWord(e), toWord(f))
  return Number(result) === -1 ? -(ffi().errno() as number) : Number(result)
}

type AsyncSyscall = {
  async(
    nr: number,
    ...rest: [...words: number[], done: (error: unknown, result: number | bigint) => void]
  ): void
}

/**
 * One system call of numbers alone on a thread of libuv's pool; the caller goes on meanwhile. Descriptors that it is given
 * stay open until it is over. The result is as that of `trySyscall`.
 */
export function trySyscallBeside(nr: number, a: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const call = syscallFunction() as unknown as AsyncSyscall
    // SAFETY: words only, no memory of ours; errno is that of the pool's thread, which koffi hands on to this callback.
    call.async(nr, a, 0, 0, 0, 0, 0, (error, result) => {
      if (error !== null && error !== undefined) reject(error)
      else resolve(Number(result) === -1 ? -(ffi().errno() as number) : Number(result))
    })
  })
}

/** `trySyscall`, but a failure is thrown as `KernelError` with the call's name and arguments. */
export function syscall(name: string, nr: number, ...args: SysArg[]): number {
  const [a, b, c, d, e, f] = args
  const result = trySyscall(nr, a, b, c, d, e, f)
  if (result < 0) throw new KernelError(name, -result, args)
  return result
}

/** Bytes of a C string. A NUL inside would silently cut it, so it is refused. */
export function cstring(text: string | Uint8Array): Buffer {
  const bytes = typeof text === 'string' ? Buffer.from(text, 'utf8') : text
  if (bytes.includes(0)) throw new PuzzledError('usage', 'A path or name contains a NUL byte')
  const buffer = Buffer.alloc(bytes.length + 1)
  buffer.set(bytes)
  return buffer
}

const scratch = Buffer.alloc(4096)
let scratchAddress: bigint | undefined

/**
 * The same for one call of one name: short ones are copied into memory of this thread that is good until the next call
 * of this function. A walk asks for hundreds of thousands of names, and a buffer for each costs more than the system call.
 */
export function nameWord(name: string | Uint8Array): SysArg {
  if (typeof name === 'string' || name.length >= scratch.length) return cstring(name)
  for (let at = 0; at < name.length; at++) {
    const byte = name[at] ?? 0
    if (byte === 0) return cstring(name)
    scratch[at] = byte
  }
  scratch[name.length] = 0
  scratchAddress ??= addressOf(scratch)
  return scratchAddress
}

const libraries = new Map<string, LibraryHandle>()

/** Loads a shared library once. A missing one is a typed error that names the Debian package. */
export function loadLibrary(file: string, debianPackage: string): LibraryHandle {
  const known = libraries.get(file)
  if (known !== undefined) return known
  try {
    const library = ffi().load(file)
    libraries.set(file, library)
    return library
  } catch (cause) {
    throw new PuzzledError('library-missing', `Cannot load ${file}`, {
      cause,
      hint: `apt-get install ${debianPackage}`,
      data: { library: file, package: debianPackage },
    })
  }
}
