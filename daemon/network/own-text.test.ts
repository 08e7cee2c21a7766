import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { collectGarbage } from '../../test/fixtures/garbage.ts'
import { parseAuthority } from './hostname.ts'
import { LIMITS } from './limits.ts'
import { RequestQueue } from './queue.ts'
import { type RequestHead, RequestParser } from './request-parser.ts'

const COUNT = 400
const LARGE = 60_000

/** Heads that are nearly as large as one may be, of which little is wanted. */
function* heads(): Generator<RequestHead> {
  for (let n = 0; n < COUNT; n++) {
    const read: RequestHead[] = []
    const sink = {
      head: (head: RequestHead) => void read.push(head),
      data: () => undefined,
      end: () => undefined,
    }
    const words = `host: name-${100_000 + n}.example.com\r\nx-wanted: a value of some length ${n}\r\nx-junk: `
    const line = `POST /a/path/of/some/length/${n} HTTP/1.1\r\n`
    new RequestParser(LIMITS, sink).push(Buffer.from(`${line}${words}${'x'.repeat(LARGE)}\r\n\r\n`, 'latin1'))
    yield* read
  }
}

/** How much more there is behind it, in bytes for each head. */
async function keptPerHead(keep: (head: RequestHead) => unknown): Promise<number> {
  const kept: unknown[] = []
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  for (const head of heads()) kept.push(await keep(head))
  collectGarbage()
  const after = process.memoryUsage().heapUsed
  expect(kept).toHaveLength(COUNT)
  return (after - before) / COUNT
}

const wanted = (head: RequestHead): string => head.headers[1]?.[1] ?? ''

it('control: what is cut from a head keeps all of it', async () => {
  expect(await keptPerHead(wanted)).toBeGreaterThan(LARGE / 2)
})

it('a host that is kept is not the head that it came with', async () => {
  const kept = await keptPerHead((head) => parseAuthority(head.headers[0]?.[1] ?? '', 80))
  expect(kept).toBeLessThan(LARGE / 6)
})

it('a queued request is as large in memory as was counted', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'puzzled-own-'))
  const queue = await RequestQueue.open(directory)
  try {
    const rest = { method: 'POST', scheme: 'http', host: 'a.example', port: 80, rule: 'r' } as const
    const kept = await keptPerHead((head) =>
      queue.add(
        { ...rest, target: head.target, headers: [['x-wanted', wanted(head)]] },
        queue.take(Buffer.from('body')),
      ),
    )
    expect(kept).toBeLessThan(LARGE / 6)
  } finally {
    await queue.close()
    rmSync(directory, { recursive: true })
  }
})
