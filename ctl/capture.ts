import { Buffer } from 'node:buffer'

/** Output in a structured result: text where it is UTF-8, else base64. */
export type Captured = ({ text: string } | { base64: string }) & {
  /** Everything that was written, in bytes. */
  size: number
  /** More was written than is here. */
  cut: boolean
}

/** Reads a stream to its end; at most `limit` bytes are kept, the rest is counted. */
export async function capture(stream: NodeJS.ReadableStream | undefined, limit: number): Promise<Captured> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of stream ?? []) {
    const bytes = chunk as Buffer
    const room = limit - Math.min(size, limit)
    if (room > 0) chunks.push(bytes.subarray(0, room))
    size += bytes.length
  }
  return { ...encodeOutput(Buffer.concat(chunks)), size, cut: size > limit }
}

export function encodeOutput(bytes: Buffer): { text: string } | { base64: string } {
  const text = bytes.toString('utf8')
  return Buffer.from(text, 'utf8').equals(bytes) ? { text } : { base64: bytes.toString('base64') }
}
