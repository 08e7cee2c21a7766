import { addressOf, cstring, KernelError, type SysArg, trySyscall } from './ffi.ts'
import { NR } from './uapi/syscalls.ts'

/**
 * Extended attributes of one inode, named by how the caller holds it. There is no `…at` form before Linux 6.13, so
 * a name below a directory descriptor goes through `/proc/self/fd/<dir>/<name>`: the `l…` calls follow the magic link
 * in the middle and never the last component.
 */
export type XattrTarget =
  /** A descriptor that is open for reading or writing. */
  | number
  /** One component below a directory descriptor (O_PATH is enough); a symlink itself. */
  | { dir: number; name: Uint8Array | string }

const ENODATA = -61
const ERANGE = -34
const ENOTSUP = -95
let buffer = Buffer.alloc(65_536)
let address: bigint | undefined

function pathOf(target: { dir: number; name: Uint8Array | string }): Buffer {
  const name = typeof target.name === 'string' ? Buffer.from(target.name) : target.name
  return cstring(Buffer.concat([Buffer.from(`/proc/self/fd/${target.dir}/`), name]))
}

type Form = 'get' | 'set' | 'list' | 'remove'
const BY_FD = { get: NR.fgetxattr, set: NR.fsetxattr, list: NR.flistxattr, remove: NR.fremovexattr }
const BY_PATH = { get: NR.lgetxattr, set: NR.lsetxattr, list: NR.llistxattr, remove: NR.lremovexattr }

function call(
  form: Form,
  target: XattrTarget,
  a: SysArg,
  b: SysArg = 0,
  c: SysArg = 0,
  d: SysArg = 0,
): number {
  // SAFETY: names end in NUL; value buffers are given with their length and outlive the synchronous call.
  return typeof target === 'number'
    ? trySyscall(BY_FD[form], target, a, b, c, d)
    : trySyscall(BY_PATH[form], pathOf(target), a, b, c, d)
}

function fail(form: Form, result: number, target: XattrTarget, name = ''): never {
  throw new KernelError(`${form}xattr`, -result, [
    typeof target === 'number' ? target : showTarget(target.name),
    name,
  ])
}

const showTarget = (name: Uint8Array | string): string =>
  typeof name === 'string' ? name : Buffer.from(name).toString('utf8')

/** Names in bytewise order; empty where the filesystem has no attributes at all. */
export function listXattrs(target: XattrTarget): string[] {
  const length = fill('list', target)
  if (length === 0 || length === ENOTSUP) return []
  if (length < 0) fail('list', length, target)
  return buffer
    .toString('latin1', 0, length - 1)
    .split('\0')
    .sort()
}

/** The value; undefined where there is none. Names are latin1 of the kernel's bytes. */
export function getXattr(target: XattrTarget, name: string): Buffer | undefined {
  const key = cstring(Buffer.from(name, 'latin1'))
  const length = fill('get', target, key)
  if (length === ENODATA || length === ENOTSUP) return undefined
  if (length < 0) fail('get', length, target, name)
  return Buffer.from(buffer.subarray(0, length))
}

/** Reads into the module's buffer, which grows when a value is larger (ext4 ea_inode, XFS: up to 64 KiB). */
function fill(form: 'get' | 'list', target: XattrTarget, key?: Uint8Array): number {
  for (;;) {
    address ??= addressOf(buffer)
    const result =
      key === undefined
        ? call(form, target, address, buffer.length)
        : call(form, target, key, address, buffer.length)
    if (result !== ERANGE || buffer.length >= 1 << 20) return result
    buffer = Buffer.alloc(buffer.length * 2)
    address = undefined
  }
}

/** `create` fails with EEXIST where the attribute exists. */
export function setXattr(target: XattrTarget, name: string, value: Uint8Array, create = false): void {
  const key = cstring(Buffer.from(name, 'latin1'))
  const result = call('set', target, key, value, value.length, create ? 1 : 0)
  if (result < 0) fail('set', result, target, name)
}

/** False where there was nothing to remove. */
export function removeXattr(target: XattrTarget, name: string): boolean {
  const result = call('remove', target, cstring(Buffer.from(name, 'latin1')))
  if (result < 0 && result !== ENODATA) fail('remove', result, target, name)
  return result === 0
}
