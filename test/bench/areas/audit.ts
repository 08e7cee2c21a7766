import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { AuditLog } from '../../../daemon/audit/log.ts'
import { segmentName } from '../../../daemon/audit/segment-name.ts'
import { listSegments } from '../../../daemon/audit/segments.ts'
import { loadPublicKey } from '../../../daemon/audit/signer.ts'
import { verifyLog } from '../../../daemon/audit/verify.ts'
import { packageRoot } from '../../../daemon/lib/assets.ts'
import type { BenchArea, BenchCase, Notes } from '../harness.ts'
import { plainEnvironment, toSuccess } from '../processes.ts'

/** Enough for several segments; `--full` for what years leave behind. */
const RECORDS = 200_000
const FULL = 1_000_000
/** As many as a busy daemon has under way at a time. */
const AT_ONCE = 2_000
/** Few: where the disk is busy, an fsync for each takes seconds. */
const SYNCED = 500
const now = (): Date => new Date()
const rooms: string[] = []

function scratch(): string {
  const path = mkdtempSync(join(tmpdir(), 'bench-audit-'))
  rooms.push(path)
  return path
}

const factsOf = (at: number) => ({ command: ['make', '-j2', `target-${at}`], exit: 0 })

const appendBurst = (log: AuditLog, from: number, count: number): Promise<unknown> =>
  Promise.all(Array.from({ length: count }, (_, at) => log.append('start', 'abcdefghjk', factsOf(from + at))))

/** Its rate, and what it took of memory meanwhile beyond what this process had. */
async function appendMany(directory: string, count: number, notes: Notes): Promise<void> {
  mkdirSync(directory, { mode: 0o700 })
  const log = await AuditLog.open(directory, { now })
  const before = process.memoryUsage().rss
  const began = performance.now()
  let most = before
  for (let done = 0; done < count; done += AT_ONCE) {
    await appendBurst(log, done, AT_ONCE)
    most = Math.max(most, process.memoryUsage().rss)
  }
  const seconds = (performance.now() - began) / 1000
  await log.close()
  notes.fact('append with group commit: rate', count / seconds, 'records/s')
  notes.fact('append with group commit: memory at most, beyond what there was', (most - before) / 1e6, 'MB')
}

/** Every record of the same bytes with an fsync of its own: what a log costs that shares none. */
async function plainAppend(directory: string, sync: 'each' | 'once'): Promise<void> {
  const handle = await open(join(directory, 'plain'), 'w')
  const line = {
    seq: 0,
    prev: '0'.repeat(64),
    time: now().toISOString(),
    kind: 'start',
    branch: 'abcdefghjk',
  }
  for (let at = 0; at < SYNCED; at++) {
    await handle.write(`${JSON.stringify({ ...line, seq: at, facts: factsOf(at) })}\n`)
    if (sync === 'each') await handle.datasync()
  }
  await handle.datasync()
  await handle.close()
}

async function appendCase(): Promise<BenchCase> {
  const [room, plain] = [scratch(), scratch()]
  const log = await AuditLog.open(room, { now })
  let done = 0
  return {
    name: `append ${SYNCED} records, durable`,
    baseline: 'plain append, an fsync for each record',
    rounds: 5,
    warmUp: 1,
    candidates: {
      'puzzled: all at once, chained, one fsync for many': async () => {
        await appendBurst(log, done, SYNCED)
        done += SYNCED
      },
      'puzzled: one after the other': async () => {
        for (let at = 0; at < SYNCED; at++) await log.append('start', 'abcdefghjk', factsOf(done++))
      },
      'plain append, an fsync for each record': () => plainAppend(plain, 'each'),
      'plain append, one fsync at the end': () => plainAppend(plain, 'once'),
    },
  }
}

async function verifyCase(directory: string, count: number): Promise<BenchCase> {
  const key = await loadPublicKey(directory)
  const segments = (await listSegments(directory)).map((segment) => join(directory, segmentName(segment)))
  const verify = async (threads?: number): Promise<void> => {
    const { bad, records } = await verifyLog(directory, key, null, threads)
    if (bad !== null || records < count) throw new Error(`verify found ${records} records and ${bad?.why}`)
  }
  return {
    name: `verify ${count} records`,
    baseline: 'sha256sum of the same bytes',
    rounds: 5,
    warmUp: 1,
    candidates: {
      'puzzled: a thread for each processor': () => verify(),
      'puzzled: one thread': () => verify(1),
      'sha256sum of the same bytes': () => toSuccess(['sha256sum', ...segments]),
    },
  }
}

const TELL_MEMORY =
  'data:text/javascript,process.on("exit",()=>console.error(process.resourceUsage().maxRSS))'

/** Of the command as it is installed, start of Node included. */
async function memoryOfVerify(state: string): Promise<number> {
  const program = join(packageRoot(), 'dist', 'puzzlectl.js')
  const child = spawn(
    process.execPath,
    ['--import', TELL_MEMORY, program, '--state-dir', state, 'audit', 'verify'],
    { env: plainEnvironment(), stdio: ['ignore', 'ignore', 'pipe'] },
  )
  const [said, [status]] = await Promise.all([text(child.stderr), once(child, 'close')])
  if (status !== 0) throw new Error(`audit verify ended with ${status}: ${said}`)
  const kibibytes = Number(said.trim().split('\n').at(-1))
  return (kibibytes * 1024) / 1e6
}

export const area: BenchArea = {
  name: 'audit',
  cases: async (notes, { full }) => {
    const count = full ? FULL : Number(process.env.PUZZLED_BENCH_RECORDS ?? RECORDS)
    const state = scratch()
    const directory = join(state, 'audit')
    await appendMany(directory, count, notes)
    const key = await loadPublicKey(directory)
    await verifyLog(directory, key)
    const began = performance.now()
    await verifyLog(directory, key)
    notes.fact('verify: rate', count / ((performance.now() - began) / 1000), 'records/s')
    notes.fact('verify: memory of the command at most', await memoryOfVerify(state), 'MB')
    return [await appendCase(), await verifyCase(directory, count)]
  },
  close: () => {
    for (const room of rooms) rmSync(room, { recursive: true, force: true })
  },
}
