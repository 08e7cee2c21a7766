import { AuditLog } from '../../daemon/audit/log.ts'

/**
 * One life of a daemon: appends, some at once and some alone, and seals; dies where PUZZLED_FAILPOINTS says. What a failing
 * disk refused is not told, and the log opens again with the next record.
 */
const [directory = '', from = '0'] = process.argv.slice(2)
const log = await AuditLog.open(directory, { now: () => new Date(0), segmentBytes: 1_500, retryMillis: 0 })
const append = async (n: number): Promise<void> => {
  const seq = await log.append('test', 'branch', { n }).catch(() => null)
  if (seq === null) return
  // What the rest of the daemon acts on; written at once, so that it is not lost with the process.
  process.stdout.write(`${n} ${seq}\n`)
}
for (let n = Number(from); n < Number(from) + 24; n += 4) {
  await append(n)
  await Promise.all([n + 1, n + 2, n + 3].map(append))
}
await log.close()
process.stdout.write('closed\n')
