import { spawnSync } from 'node:child_process'
import { appendFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { decodeRecord } from '../../daemon/audit/record.ts'
import { segmentName } from '../../daemon/audit/segment-name.ts'
import { linesOf, listSegments } from '../../daemon/audit/segments.ts'
import { loadPublicKey } from '../../daemon/audit/signer.ts'
import { verifyLog } from '../../daemon/audit/verify.ts'
import { bundleChild } from './child.ts'

let work = ''
let child: Awaited<ReturnType<typeof bundleChild>>

beforeAll(async () => {
  work = mkdtempSync(join(tmpdir(), 'puzzled-audit-crash-'))
  child = await bundleChild('audit-child.ts')
})
afterAll(() => {
  rmSync(work, { recursive: true })
  child.remove()
})

/** What was acknowledged, by number, with the record that holds it. */
function live(
  directory: string,
  from: number,
  failpoints: string,
): { told: Map<number, number>; signal: string | null } {
  const env = { ...process.env, PUZZLED_FAILPOINTS: failpoints }
  const run = spawnSync(process.execPath, [child.path, directory, String(from)], { env, encoding: 'utf8' })
  if (run.signal === null) expect([run.status, run.stderr]).toEqual([0, ''])
  const told = [...run.stdout.matchAll(/^(\d+) (\d+)$/gm)].map(
    ([, n, seq]) => [Number(n), Number(seq)] as const,
  )
  return { told: new Map(told), signal: run.signal }
}

async function onDisk(directory: string): Promise<Map<number, number>> {
  const found = new Map<number, number>()
  for (const segment of await listSegments(directory))
    for await (const lines of linesOf(directory, segment))
      for (const { bytes } of lines) {
        const record = decodeRecord(bytes)
        if (record?.kind === 'test') found.set(record.seq, Number(record.facts.n))
      }
  return found
}

/** The next life takes the log up, and what either of them was told is there. */
async function goesOn(directory: string, step: string, told: ReadonlyMap<number, number>): Promise<void> {
  const second = live(directory, 100, '')
  expect(second.signal).toBeNull()
  const { bad, torn } = await verifyLog(directory, await loadPublicKey(directory))
  expect([step, bad, torn]).toEqual([step, null, false])
  const found = await onDisk(directory)
  for (const [n, seq] of [...told, ...second.told]) expect([step, n, found.get(seq)]).toEqual([step, n, n])
  expect(readdirSync(directory).filter((name) => /^audit\.(?:key|pub)\./.test(name))).toEqual([])
}

const STEPS = [
  ...['audit.key-written', 'audit.key-placed', 'audit.tip-made'],
  ...['audit.before-append', 'audit.before-sync', 'audit.before-tip', 'audit.after-tip'],
  ...['audit.sealed', 'audit.segment-made', 'audit.segment-named', 'audit.segment-created', 'audit.rotated'],
]
/** First, second and a later time: another segment, a head, the seal at the end. */
const TIMES = [1, 2, 7, 20]

describe('a daemon that is killed', () => {
  it.each(STEPS)('at %s: what was acknowledged is there, and the log verifies and goes on', async (step) => {
    let killed = 0
    for (const time of TIMES) {
      const directory = mkdtempSync(join(work, 'log-'))
      const first = live(directory, 0, `${step}#${time}=kill`)
      if (first.signal === 'SIGKILL') killed++
      await goesOn(directory, `${step}#${time}`, first.told)
    }
    expect(killed).toBeGreaterThan(0)
  })

  // From then on the disk fails whenever it comes there again.
  it.each([
    ['audit.before-sync#5', 'audit.torn-kept'],
    ['audit.before-sync#5', 'audit.cut'],
    ['audit.before-tip#5', 'audit.cut'],
    ['audit.sealed#1', 'audit.cut'],
    ['audit.segment-created#1', 'audit.cut'],
    ['audit.sealed#1', 'audit.reopened'],
    ['audit.segment-created#1', 'audit.reopened'],
  ])('after the disk failed at %s, at %s: the same', async (fails, dies) => {
    for (const time of [1, 2]) {
      const directory = mkdtempSync(join(work, 'log-'))
      const first = live(directory, 0, `${fails}=EIO,${dies}#${time}=kill`)
      expect([fails, dies, time, first.signal]).toEqual([fails, dies, time, 'SIGKILL'])
      await goesOn(directory, `${fails} ${dies}`, first.told)
    }
  })

  it('while it sets a torn line aside: the next one does it', async () => {
    const directory = mkdtempSync(join(work, 'log-'))
    const { told } = live(directory, 0, '')
    const last = (await listSegments(directory)).at(-1) ?? 1
    appendFileSync(join(directory, segmentName(last)), '{"seq":99,"prev":"torn')
    expect(live(directory, 100, 'audit.torn-kept=kill').signal).toBe('SIGKILL')
    const again = live(directory, 100, '')
    expect((await verifyLog(directory, await loadPublicKey(directory))).bad).toBeNull()
    expect(readdirSync(directory).filter((name) => name.startsWith('torn-')).length).toBeGreaterThan(0)
    const found = await onDisk(directory)
    for (const [n, seq] of [...told, ...again.told]) expect(found.get(seq)).toBe(n)
  })
})
