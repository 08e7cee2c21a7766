import { createHash } from 'node:crypto'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { PuzzledError } from '../lib/errors.ts'
import { failpoint } from '../lib/failpoint.ts'
import type { StoredBody } from './queue-record.ts'

/** Bodies up to this size live in the log's record, so one group commit covers them. */
export const INLINE_BYTES = 16_384

export interface SpoolLimits {
  /** Of one body. */
  readonly maxBodyBytes: number
  /** Takes bytes of the queue's quota; throws `queue-full` when there are not so many. */
  reserve(bytes: number): void
  release(bytes: number): void
}

/**
 * Streams a body to where it survives. What was reserved or written is given back when it fails, and the body is
 * durable when this resolves, except that the log's record may carry it.
 */
export async function spoolBody(
  directory: string,
  nameOfFile: () => string,
  chunks: AsyncIterable<Uint8Array>,
  limits: SpoolLimits,
): Promise<StoredBody> {
  const hash = createHash('sha256')
  const small: Uint8Array[] = []
  let size = 0
  let file: FileHandle | undefined
  let name = ''
  try {
    for await (const chunk of chunks) {
      if (size + chunk.length > limits.maxBodyBytes)
        throw new PuzzledError('too-large', `The body is larger than ${limits.maxBodyBytes} bytes`)
      limits.reserve(chunk.length)
      size += chunk.length
      hash.update(chunk)
      if (file === undefined && size <= INLINE_BYTES) small.push(chunk)
      else {
        if (file === undefined) {
          name = nameOfFile()
          file = await startFile(join(directory, name), small)
        }
        await writeAll(file, chunk)
      }
    }
    const sha256 = hash.digest('hex')
    if (file === undefined) return { size, sha256, inline: Buffer.concat(small).toString('base64') }
    await file.datasync()
    await file.close()
    await syncDirectory(directory)
    failpoint('queue.body-durable')
    return { size, sha256, file: name }
  } catch (error) {
    limits.release(size)
    await file?.close().catch(() => undefined)
    if (name !== '') await rm(join(directory, name), { force: true })
    throw error
  }
}

/** A body that is in memory already, and small enough for the log. */
export function inlineBody(bytes: Buffer, limits: SpoolLimits): StoredBody {
  if (bytes.length > limits.maxBodyBytes)
    throw new PuzzledError('too-large', `The body is larger than ${limits.maxBodyBytes} bytes`)
  limits.reserve(bytes.length)
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  return { size: bytes.length, sha256, inline: bytes.toString('base64') }
}

/** The first bytes of a body that has a file. */
export async function readStart(path: string, bytes: number): Promise<Buffer> {
  const file = await open(path, 'r')
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), { position: 0 })
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

async function startFile(path: string, before: readonly Uint8Array[]): Promise<FileHandle> {
  const file = await open(path, 'wx', 0o600)
  for (const chunk of before) await writeAll(file, chunk)
  return file
}

async function writeAll(file: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let at = 0; at < chunk.length; ) at += (await file.write(chunk, at, chunk.length - at)).bytesWritten
}

export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}
