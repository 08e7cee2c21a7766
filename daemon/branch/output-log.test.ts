import { appendFileSync, mkdtempSync, readdirSync, rmSync, statSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FileOutputLogs, SEGMENT_BYTES } from './output-log.ts'

let root: string
let logs: FileOutputLogs
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'puzzled-output-'))
  logs = new FileOutputLogs(
    () => root,
    () => new Date(86_400_000),
  )
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const segments = (): string[] => readdirSync(join(root, 'output')).sort()

async function written(...texts: readonly string[]): Promise<void> {
  const log = logs.open('b')
  for (const text of texts) log.write('stdout', Buffer.from(text))
  await log.end()
}

async function readAll(limit = 1 << 20): Promise<string> {
  let text = ''
  for (let cursor = 0; ; ) {
    const part = await logs.read('b', cursor, limit)
    if (part.entries.length === 0) return text
    text += part.entries.map(({ bytes }) => Buffer.from(bytes).toString()).join('')
    cursor = part.next
  }
}

describe('the output of an agent', () => {
  it('is kept in its order, with stream and time', async () => {
    const log = logs.open('b')
    log.write('stdout', Buffer.from('out\n'))
    log.write('stderr', Buffer.from([0xff, 0]))
    await log.end()
    const { entries, lost } = await logs.read('b', 0, 1 << 20)
    expect(entries).toEqual([
      { at: '1970-01-02T00:00:00.000Z', stream: 'stdout', bytes: Buffer.from('out\n') },
      { at: '1970-01-02T00:00:00.000Z', stream: 'stderr', bytes: Buffer.from([0xff, 0]) },
    ])
    expect(lost).toBe(0)
  })

  it('of a branch that never wrote is empty', async () =>
    expect(await logs.read('b', 0, 100)).toEqual({ entries: [], next: 0, lost: 0 }))

  it('is read in pieces, and from where a reader was', async () => {
    await written('one ', 'two ', 'three ')
    expect(await readAll(1)).toBe('one two three ')
    const { next } = await logs.read('b', 0, 1 << 20)
    await written('four')
    expect((await logs.read('b', next, 1 << 20)).entries).toMatchObject([{ bytes: Buffer.from('four') }])
  })

  it('is not read from a cursor that nobody was given', async () => {
    await written('one', 'two')
    for (let cursor = 1; cursor < 40; cursor++) expect(await logs.read('b', cursor, 100)).toBeDefined()
  })

  it('keeps the newest part of what is too much, and says how much is gone', async () => {
    const chunk = 'x'.repeat(1 << 20)
    const log = logs.open('b')
    for (let index = 0; index < 14; index++) {
      log.write('stdout', Buffer.from(chunk))
      await log.end()
    }
    log.write('stdout', Buffer.from('the end'))
    await log.end()
    expect(segments().length).toBe(2)
    const { lost } = await logs.read('b', 0, 100)
    expect(lost).toBeGreaterThan(0)
    const kept = await readAll()
    expect(kept.length).toBeGreaterThan(SEGMENT_BYTES / 2)
    expect(kept.length).toBeLessThan(2 * SEGMENT_BYTES + (1 << 20))
    expect(kept.endsWith('the end')).toBe(true)
  })

  it('survives a torn end, and the next agent writes behind what is whole', async () => {
    await written('whole')
    appendFileSync(join(root, 'output', segments()[0] ?? ''), Buffer.from([0, 0, 0, 0]))
    expect(await readAll()).toBe('whole')
    await written(' again')
    expect(await readAll()).toBe('whole again')
  })

  it('survives a tail of zeros, as a filesystem leaves it behind where the data was not written any more', async () => {
    await written('whole')
    appendFileSync(join(root, 'output', segments()[0] ?? ''), Buffer.alloc(4096))
    expect(await readAll()).toBe('whole')
    await written(' again')
    expect(await readAll()).toBe('whole again')
  })

  it('goes on behind an older segment that lost its tail, and says how much is gone', async () => {
    const log = logs.open('b')
    for (let index = 0; index < 6; index++) {
      log.write('stdout', Buffer.alloc(1 << 20, `${index}`))
      await log.end()
    }
    const [older = ''] = segments()
    expect(segments()).toHaveLength(2)
    const path = join(root, 'output', older)
    const { size } = statSync(path)
    const torn = size - 100
    truncateSync(path, torn)
    const text = await readAll()
    expect(text.endsWith('5'.repeat(1 << 20))).toBe(true)
    let lost = 0
    for (let cursor = 0, going = true; going; ) {
      const part = await logs.read('b', cursor, 100_000)
      lost += part.lost
      going = part.entries.length > 0
      cursor = part.next
    }
    expect(lost).toBeGreaterThanOrEqual(100)
    expect(lost).toBeLessThan(size)
    expect(text.length + lost).toBeLessThanOrEqual(6 * (1 << 20) + 6 * 4 * 13)
  })

  it('is left out where the disk refuses, and nobody is disturbed', async () => {
    rmSync(root, { recursive: true })
    appendFileSync(root, 'in the way')
    await written('lost')
    expect((await logs.read('b', 0, 100).catch((error: NodeJS.ErrnoException) => error.code)) ?? '').toBe(
      'ENOTDIR',
    )
  })
})
