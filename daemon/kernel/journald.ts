import { addressOf, KernelError, loadLibrary } from './ffi.ts'
import { iovec } from './uapi/index.ts'

/** The native protocol's socket. Without it sd_journal_sendv reports success and drops the record. */
export const JOURNAL_SOCKET = '/run/systemd/journal/socket'

type SendFunction = (vector: Buffer, count: number) => number
let send: SendFunction | undefined

function sendFunction(): SendFunction {
  send ??= loadLibrary('libsystemd.so.0', 'libsystemd0').func(
    'int sd_journal_sendv(const void *iov, int n)',
  ) as unknown as SendFunction
  return send
}

const FIELD = /^[A-Z][A-Z0-9_]{0,63}$/

/**
 * Sends one record with fields, as `PUZZLED_BRANCH=…`. Values may hold any bytes, newlines included: the library frames
 * them. Names are ours and checked; what an agent chose belongs into values only.
 */
export function sendToJournal(fields: Readonly<Record<string, string>>): void {
  const entries = Object.entries(fields).map(([name, value]) => {
    if (!FIELD.test(name)) throw new KernelError('sd_journal_sendv', 22, [name])
    return Buffer.from(`${name}=${value}`)
  })
  const vector = Buffer.alloc(entries.length * iovec.size)
  entries.forEach((entry, index) => {
    vector.writeBigUInt64LE(addressOf(entry), index * iovec.size + iovec.iov_base)
    vector.writeBigUInt64LE(BigInt(entry.length), index * iovec.size + iovec.iov_len)
  })
  // SAFETY: `entries` keeps every buffer alive until the synchronous call returns; the library copies them.
  const result = sendFunction()(vector, entries.length)
  if (result < 0) throw new KernelError('sd_journal_sendv', -result, [Object.keys(fields).join(' ')])
}
