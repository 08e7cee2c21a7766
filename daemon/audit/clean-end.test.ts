import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { AuditLog } from './log.ts'
import { segmentName } from './segment-name.ts'
import { loadPublicKey } from './signer.ts'
import { verifyLog } from './verify.ts'

let directory = ''
const now = (): Date => new Date('2026-01-01T00:00:00Z')
const path = (): string => join(directory, segmentName(1))
const lines = async (): Promise<string[]> => (await readFile(path(), 'utf8')).split('\n').slice(0, -1)
const put = (all: readonly string[]): Promise<void> =>
  writeFile(path(), all.map((one) => `${one}\n`).join(''))
const verify = async () => verifyLog(directory, await loadPublicKey(directory))

async function command(count: number, segmentBytes = 1 << 20): Promise<void> {
  const log = await AuditLog.open(directory, { now, segmentBytes, believeCleanEnd: true })
  for (let at = 0; at < count; at++) await log.append('test', 'branch', { at })
  await log.close()
}

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'puzzled-audit-'))
})
afterEach(() => rm(directory, { recursive: true }))

describe('one command after the other', () => {
  it.each([1 << 20, 700])(
    'writes the log that one process would have written (segments of %d)',
    async (bytes) => {
      for (let round = 0; round < 12; round++) await command(round % 4, bytes)
      expect(await verify()).toMatchObject({ bad: null, torn: false })
    },
  )

  it('is refused when the end is not the one that was signed and noted', async () => {
    await command(3)
    const written = await lines()
    const end = written.at(-1) ?? ''
    for (const change of [
      written.slice(0, -1),
      [...written.slice(0, -1), end.replace('"size":3', '"size":2')],
      [...written.slice(0, -1), end.replace('2026-01-01', '2026-01-02')],
      [],
    ]) {
      await put(change)
      await expect(command(1)).rejects.toMatchObject({ code: 'audit-failed' })
    }
    await put(written)
    await command(1)
  })

  it('takes up a log that a crash left without a head', async () => {
    const log = await AuditLog.open(directory, { now })
    await log.append('test', 'branch', {})
    const files = ['tip', segmentName(1)].map((name) => join(directory, name))
    const crashed = await Promise.all(files.map((file) => readFile(file)))
    await log.close()
    await Promise.all(files.map((file, at) => writeFile(file, crashed[at] ?? '')))
    await command(2)
    expect(await verify()).toMatchObject({ bad: null, records: 4 })
  })

  it('cannot hide a record that was changed in the middle', async () => {
    await command(5)
    const written = await lines()
    await put(written.with(1, (written[1] ?? '').replace('"at":1', '"at":7')))
    await command(2)
    expect((await verify()).bad).toMatchObject({ seq: 1 })
    await expect(AuditLog.open(directory, { now })).rejects.toMatchObject({ code: 'audit-failed' })
  })
})
