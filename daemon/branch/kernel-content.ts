import { createHash, type Hash, hash } from 'node:crypto'
import { readFileSync, writeSync } from 'node:fs'
import { KernelError } from '../kernel/ffi.ts'
import { clone, ftruncate, nextData, pread } from '../kernel/file-data.ts'
import { isFile, statFd } from '../kernel/statx.ts'

/** Up to this size one read, one hash and one write; what lies above goes in pieces, or by sharing blocks. */
const SMALL = 1 << 20
const PIECE = 4 << 20
let zeros: Buffer | undefined

function sizeOfFile(fd: number): number {
  const stat = statFd(fd)
  if (!isFile(stat)) throw new KernelError('open', 22, ['not a regular file'])
  return stat.size
}

/** Copies the content and returns the digest of the bytes that were written. */
export function copyContent(from: number, to: number): string {
  const size = sizeOfFile(from)
  if (size <= SMALL) {
    const bytes = readWhole(from, size)
    writeContent(to, bytes, 0)
    return hash('sha256', bytes)
  }
  // Shared blocks are those that are hashed: read from the copy, which nobody else can write to.
  if (clone(from, to)) return digestContent(to)
  const digest = createHash('sha256')
  eachPiece(from, size, digest, (bytes, offset) => writeContent(to, bytes, offset))
  ftruncate(to, size)
  return digest.digest('hex')
}

export function digestContent(fd: number): string {
  const size = sizeOfFile(fd)
  if (size <= SMALL) return hash('sha256', readWhole(fd, size))
  const digest = createHash('sha256')
  eachPiece(fd, size, digest, () => undefined)
  return digest.digest('hex')
}

function readWhole(fd: number, size: number): Buffer {
  const bytes = Buffer.allocUnsafe(size)
  return bytes.subarray(0, pread(fd, bytes, 0))
}

/** Data in pieces, holes as zeros that are hashed but not handed on: sparse stays sparse. */
function eachPiece(
  fd: number,
  size: number,
  digest: Hash,
  take: (bytes: Buffer, offset: number) => void,
): void {
  const buffer = Buffer.allocUnsafe(PIECE)
  let at = 0
  while (at < size) {
    const data = nextData(fd, at, size) ?? { start: size, end: size }
    hashZeros(digest, data.start - at)
    for (at = data.start; at < data.end; ) {
      const bytes = buffer.subarray(0, pread(fd, buffer.subarray(0, Math.min(PIECE, data.end - at)), at))
      // The file became shorter meanwhile; the digest will tell.
      if (bytes.length === 0) return
      digest.update(bytes)
      take(bytes, at)
      at += bytes.length
    }
  }
}

function hashZeros(digest: Hash, count: number): void {
  zeros ??= Buffer.alloc(PIECE)
  for (let left = count; left > 0; left -= PIECE) digest.update(zeros.subarray(0, Math.min(PIECE, left)))
}

export const readContent = (fd: number): Buffer => readFileSync(fd)

export function writeContent(fd: number, bytes: Uint8Array, offset: number): void {
  for (let done = 0; done < bytes.length; )
    done += writeSync(fd, bytes, done, bytes.length - done, offset + done)
}
