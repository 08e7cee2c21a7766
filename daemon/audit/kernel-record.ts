// pure

/** Record types of `linux/audit.h` that tell of a refusal; this folder knows no kernel code. */
export const RECORD = { seccomp: 1326, avc: 1400, landlockAccess: 1423, landlockDomain: 1424 } as const

/** What the kernel said, without a word about whose process it was: that is found out by the numbers in it. */
export type KernelRecord =
  | {
      readonly kind: 'seccomp'
      readonly at: number
      /** Session of the audit system; null where the process has none. */
      readonly session: number | null
      readonly pid: number
      readonly program: string
      readonly call: number
    }
  | {
      readonly kind: 'landlock'
      readonly at: number
      readonly domain: string
      /** What the domain does not grant: `fs.write_file`, `net.connect_tcp`, `scope.signal`. */
      readonly blockers: readonly string[]
      readonly object: string
    }
  /** Comes once for each domain, after the first refusal by it. */
  | { readonly kind: 'domain'; readonly at: number; readonly domain: string; readonly pid: number }
  | {
      readonly kind: 'lsm'
      readonly at: number
      readonly pid: number
      readonly program: string
      readonly module: 'selinux' | 'apparmor'
      /** `read`, `{ read open }`. */
      readonly act: string
      readonly object: string
    }

const UNSET = 2 ** 32 - 1
const ERRNO_ACTION = 0x50000
const ACTION_MASK = 0xffff0000

/** Null for whatever tells of no refusal, or is not exactly what the kernel writes. */
export function readKernelRecord(type: number, text: string): KernelRecord | null {
  const stamp = /^audit\((\d{1,12})\.(\d{3}):\d+\): /.exec(text)
  if (stamp === null) return null
  const at = Number(stamp[1]) * 1000 + Number(stamp[2])
  const body = text.slice(stamp[0].length)
  const fields = fieldsOf(body)
  if (type === RECORD.seccomp) return seccomp(at, fields)
  if (type === RECORD.landlockAccess) return landlock(at, fields)
  if (type === RECORD.landlockDomain) return domain(at, fields)
  return type === RECORD.avc ? (selinux(at, body, fields) ?? apparmor(at, fields)) : null
}

type Fields = ReadonlyMap<string, string>

/**
 * `name=value`, `name="value"`: the kernel writes a value that a process chose with quotes when it has neither quotes nor
 * blanks nor control characters, otherwise in hex. Of two fields with one name the first is the kernel's own.
 */
function fieldsOf(body: string): Fields {
  const fields = new Map<string, string>()
  for (const [, name = '', value = ''] of body.matchAll(/([a-z_]+)=("[^"]*"|[^\s"]*)/g))
    if (!fields.has(name)) fields.set(name, value)
  return fields
}

/** Chosen by a process: its bytes, as text. */
function chosen(fields: Fields, name: string): string {
  const value = fields.get(name) ?? ''
  if (value.startsWith('"')) return value.slice(1, -1)
  if (!/^(?:[0-9A-F]{2})+$/.test(value)) return value
  return Buffer.from(value, 'hex').toString('utf8')
}

function numberOf(fields: Fields, name: string): number | null {
  const value = fields.get(name) ?? ''
  return /^\d{1,10}$/.test(value) ? Number(value) : null
}

function seccomp(at: number, fields: Fields): KernelRecord | null {
  const [pid, call] = [numberOf(fields, 'pid'), numberOf(fields, 'syscall')]
  const code = Number(fields.get('code'))
  // A filter that kills, traps or only logs is none of ours.
  if (pid === null || call === null || (code & ACTION_MASK) >>> 0 !== ERRNO_ACTION) return null
  const session = numberOf(fields, 'ses')
  return {
    kind: 'seccomp',
    at,
    session: session === UNSET ? null : session,
    pid,
    program: chosen(fields, 'comm'),
    call,
  }
}

const domainOf = (fields: Fields): string | null =>
  /^[0-9a-f]{1,16}$/.test(fields.get('domain') ?? '') ? (fields.get('domain') ?? null) : null

function landlock(at: number, fields: Fields): KernelRecord | null {
  const id = domainOf(fields)
  const blockers = (fields.get('blockers') ?? '').split(',')
  if (id === null || !blockers.every((name) => /^[a-z_]+(\.[a-z_]+)?$/.test(name))) return null
  return { kind: 'landlock', at, domain: id, blockers, object: landlockObject(fields) }
}

/** A path, a port, an abstract name, or another process. */
function landlockObject(fields: Fields): string {
  if (fields.has('path')) return chosen(fields, 'path')
  const port = fields.get('dest') ?? fields.get('src')
  if (port !== undefined) {
    const address = fields.get('daddr') ?? fields.get('saddr')
    return address === undefined ? `port ${port}` : `${address} port ${port}`
  }
  const other = chosen(fields, 'ocomm')
  return other === '' ? chosen(fields, 'name') : `process ${other}`
}

function domain(at: number, fields: Fields): KernelRecord | null {
  const [id, pid] = [domainOf(fields), numberOf(fields, 'pid')]
  if (id === null || pid === null || fields.get('status') !== 'allocated') return null
  return { kind: 'domain', at, domain: id, pid }
}

function selinux(at: number, body: string, fields: Fields): KernelRecord | null {
  const act = /^avc:\s+denied\s+(\{ [a-z_0-9 ]+ \})/.exec(body)?.[1]
  const pid = numberOf(fields, 'pid')
  // A permissive host only says what it would have refused.
  if (act === undefined || pid === null || fields.get('permissive') === '1') return null
  const object = chosen(fields, 'path') || chosen(fields, 'name') || (fields.get('tclass') ?? '')
  return { kind: 'lsm', at, pid, program: chosen(fields, 'comm'), module: 'selinux', act, object }
}

function apparmor(at: number, fields: Fields): KernelRecord | null {
  const pid = numberOf(fields, 'pid')
  if (fields.get('apparmor') !== '"DENIED"' || pid === null) return null
  const [act, object] = [chosen(fields, 'operation'), chosen(fields, 'name')]
  return { kind: 'lsm', at, pid, program: chosen(fields, 'comm'), module: 'apparmor', act, object }
}
