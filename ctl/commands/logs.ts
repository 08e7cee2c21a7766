import { setTimeout as sleep } from 'node:timers/promises'
import type { EngineReader, OutputEntry } from '../../daemon/contract/engine.ts'
import { PuzzledError } from '../../daemon/lib/errors.ts'
import { encodeOutput } from '../capture.ts'
import { jsonText } from '../json.ts'
import { OutputText } from '../render/output-text.ts'
import { bytesText } from '../render/sizes.ts'
import { flagOption, textOption, type VerbContext, type VerbRun } from '../verb.ts'

const ASKED_BYTES = 1 << 20
const LOOK_AGAIN_MILLIS = 250

/** Shows one piece after the other; `end` what was held back, because the next piece could have belonged to it. */
interface Show {
  (entry: OutputEntry): Promise<void>
  end(): Promise<void>
}

/** What the agent wrote, as far as it is kept; its errors on standard error. */
export const run: VerbRun = async (context, [id = ''], options) => {
  const lines = tailOf(textOption(options, 'tail'))
  const engine = await context.reader()
  const branch = (await engine.show(id)).id
  const show = shower(context, flagOption(options, 'raw'))
  // Before anything is shown: who has seen something may have seen enough.
  const stop = flagOption(options, 'follow') ? endOfFollowing() : undefined
  const { cursor, lost } = await showKept(engine, branch, lines, show)
  if (lost > 0 && lines === null)
    await context.printError(`${context.paintErrors.dim(`(${bytesText(lost)} before this are not kept)`)}\n`)
  if (stop !== undefined) await follow(engine, branch, cursor, show, stop)
  await show.end()
  return 0
}

function tailOf(text: string | null): number | null {
  if (text === null) return null
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new PuzzledError('usage', `--tail ${text} is not a number of lines`)
}

/** Everything that is kept, or its last lines. */
async function showKept(
  engine: EngineReader,
  branch: string,
  lines: number | null,
  show: Show,
): Promise<{ cursor: number; lost: number }> {
  const kept: OutputEntry[] = []
  let cursor = 0
  let lost = 0
  for (;;) {
    const part = await engine.output(branch, cursor, ASKED_BYTES)
    if (cursor === 0) lost = part.lost
    cursor = part.next
    if (part.entries.length === 0) break
    if (lines === null) for (const entry of part.entries) await show(entry)
    else kept.push(...part.entries)
  }
  for (const entry of lines === null ? [] : lastLines(kept, lines)) await show(entry)
  return { cursor, lost }
}

function endOfFollowing(): AbortSignal {
  const stop = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stop.abort())
  // A reader that closed the pipe has seen enough.
  process.stdout.on('error', () => stop.abort())
  return stop.signal
}

async function follow(
  engine: EngineReader,
  branch: string,
  from: number,
  show: Show,
  stop: AbortSignal,
): Promise<void> {
  for (let cursor = from; !stop.aborted; ) {
    const part = await engine.output(branch, cursor, ASKED_BYTES)
    for (const entry of part.entries) await show(entry)
    cursor = part.next
    if (part.ended) return
    if (part.entries.length === 0)
      await sleep(LOOK_AGAIN_MILLIS, undefined, { signal: stop }).catch(() => undefined)
  }
}

/** The last so many lines over both streams, counted from the end as they were written. */
export function lastLines(entries: readonly OutputEntry[], lines: number): OutputEntry[] {
  if (lines === 0) return []
  const found: OutputEntry[] = []
  let breaks = 0
  for (let index = entries.length - 1; index >= 0; index--) {
    const entry = entries[index]
    if (entry === undefined) break
    for (let at = entry.bytes.length - 1; at >= 0; at--) {
      if (entry.bytes[at] !== 0x0a) continue
      // The break at the very end closes the last line; it does not begin another.
      const isLast = found.length === 0 && at === entry.bytes.length - 1
      if (isLast || ++breaks < lines) continue
      return at + 1 === entry.bytes.length
        ? found
        : [{ ...entry, bytes: entry.bytes.subarray(at + 1) }, ...found]
    }
    found.unshift(entry)
  }
  return found
}

/**
 * To a person at a terminal control characters are shown, not sent: the agent must not move the cursor of whoever reads its
 * log. Programs get the bytes.
 */
function shower(context: VerbContext, raw: boolean): Show {
  const texts = { stdout: new OutputText(), stderr: new OutputText() }
  const send = (stream: 'stdout' | 'stderr', what: string | Buffer): Promise<void> =>
    new Promise((resolve) => void process[stream].write(what, () => resolve()))
  const isShown = (stream: 'stdout' | 'stderr'): boolean => process[stream].isTTY === true && !raw
  const show = async ({ at, stream, bytes }: OutputEntry): Promise<void> => {
    const exact = Buffer.from(bytes)
    if (context.json) await context.print(jsonText({ at, stream, ...encodeOutput(exact) }))
    else await send(stream, isShown(stream) ? texts[stream].push(exact) : exact)
  }
  const end = async (): Promise<void> => {
    for (const stream of ['stdout', 'stderr'] as const) await send(stream, texts[stream].end())
  }
  return Object.assign(show, { end })
}
