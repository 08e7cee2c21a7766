import type { Readable } from 'node:stream'
import type { AgentExit } from '../../daemon/contract/branch.ts'
import type { HeldProcess } from '../../daemon/sandbox/held-process.ts'

/** What one command in a branch did, as `exec --json` tells it. */
export interface Effect extends AgentExit {
  readonly durationMs: number
  readonly stdout: Captured
  readonly stderr: Captured
}

export interface Captured {
  readonly bytes: Uint8Array
  /** Everything that was written; more than `bytes.length` when it was cut. */
  readonly size: number
}

/** Collects a command with pipes to its end. At most `limit` bytes of each output are kept; the rest is counted. */
export async function effectOf(held: HeldProcess, limit = 1024 * 1024): Promise<Effect> {
  held.input?.end()
  const [stdout, stderr, exit] = await Promise.all([
    capture(held.output, limit),
    capture(held.errors, limit),
    held.exited,
  ])
  const durationMs = Date.parse(exit.endedAt) - Date.parse(exit.startedAt)
  return { ...exit, durationMs, stdout, stderr }
}

async function capture(stream: NodeJS.ReadableStream | undefined, limit: number): Promise<Captured> {
  const chunks: Buffer[] = []
  let size = 0
  if (stream === undefined) return { bytes: Buffer.alloc(0), size }
  for await (const chunk of stream as Readable) {
    const room = limit - Math.min(size, limit)
    if (room > 0) chunks.push((chunk as Buffer).subarray(0, room))
    size += (chunk as Buffer).length
  }
  return { bytes: Buffer.concat(chunks), size }
}
