import { readSync, writeSync } from 'node:fs'
import { CHANNEL, frameOf, lengthsOf, PREFIX_BYTES } from './frames.ts'

/**
 * The worker's end of the channel. It reads and writes without the event loop: after its filter is installed a worker
 * can wait for nothing else, and needs no system call for it but these two.
 */
export function receive(): { header: unknown; body: Buffer } | null {
  const prefix = readExactly(PREFIX_BYTES)
  if (prefix === null) return null
  const { header, body } = lengthsOf(prefix)
  const text = readExactly(header)
  const bytes = readExactly(body)
  return text === null || bytes === null ? null : { header: JSON.parse(text.toString('utf8')), body: bytes }
}

export function send(message: unknown): void {
  for (const part of frameOf(message))
    for (let at = 0; at < part.byteLength; ) at += writeSync(CHANNEL, part, at)
}

/** Null at the end: whoever started this worker is gone. */
function readExactly(length: number): Buffer | null {
  const bytes = Buffer.allocUnsafeSlow(length)
  for (let at = 0; at < length; ) {
    const read = readSync(CHANNEL, bytes, at, length - at, null)
    if (read === 0) return null
    at += read
  }
  return bytes
}
