import { addressOf, KernelError, loadLibrary } from './ffi.ts'
import { iovec } from './uapi/index.ts'

/** The native protocol's socket. Without it sd_journal_sendv reports success and drops the record. */
export const JOURNAL_SOCKET = '/run/systemd/journal/socket'

type SendFunction = {
  async(vector: Buffer, count: number, done: (error: unknown, result: number) => void): void
}
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
 * them. Names are ours and checked; what an agent chose belongs into values only. A journal that is slow makes a thread of
 * the pool wait, never the event loop.
 */
export async function sendToJournal(fields: Readonly<Record<string, string>>): Promise<void> {
  const entries = Object.entries(fields).map(([name, value]) => {
    if (!FIELD.test(name)) throw new KernelError('sd_journal_sendv', 22, [name])
    return Buffer.from(`${name}=${value}`)
  })
  const vector = Buffer.alloc(entries.length * iovec.size)
  entries.forEach((entry, index) => {
    vector.writeBigUInt64LE(addressOf(entry), index * iovec.size + iovec.iov_base)
    vector.writeBigUInt64LE(BigInt(entry.length), index * iovec.size + iovec.iov_len)
  })
  const result = await new Promise<number>((resolve, reject) => {
    // SAFETY: runs on a thread of libuv's pool and only reads. The closure holds `vector` and `entries`, which is known to
    // the vector by address only, until the call has returned.
    sendFunction().async(vector, entries.length, (error, sent) => {
      if (error !== null && error !== undefined) reject(error)
      else resolve(entries.length > 0 ? sent : 0)
    })
  })
  if (result < 0) throw new KernelError('sd_journal_sendv', -result, [Object.keys(fields).join(' ')])
}
