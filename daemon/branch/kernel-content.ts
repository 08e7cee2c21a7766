import { hash } from 'node:crypto'
import { readFileSync, writeSync } from 'node:fs'
import { KernelError } from '../kernel/ffi.ts'
import { clone, ftruncate, nextData, pread } from '../kernel/file-data.ts'
import { isFile, statFd } from '../kernel/statx.ts'
import { OwnHash } from './content-hash.ts'
import { SideHash } from './side-hash.ts'

/** Up to this size one read, one hash and one write; what lies above goes in pieces, or by sharing blocks. */
const SMALL = 1 << 20
/** From here on a second thread saves more than it costs to start: hashing takes as long as copying does. */
export const SIDE_BYTES = 64 << 20

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
  const digest = eachPiece(from, size, (bytes, offset) => writeContent(to, bytes, offset))
  ftruncate(to, size)
  return digest
}

export function digestContent(fd: number): string {
  const size = sizeOfFile(fd)
  return size <= SMALL ? hash('sha256', readWhole(fd, size)) : eachPiece(fd, size, () => undefined)
}

function readWhole(fd: number, size: number): Buffer {
  const bytes = Buffer.allocUnsafe(size)
  return bytes.subarray(0, pread(fd, bytes, 0))
}

/**
 * Data in pieces, holes as zeros that are hashed but not handed on: sparse stays sparse. Returns the digest of the bytes
 * that were handed on: they are read once.
 */
function eachPiece(fd: number, size: number, take: (bytes: Buffer, offset: number) => void): string {
  const digest = size < SIDE_BYTES ? new OwnHash() : new SideHash()
  try {
    for (let at = 0; at < size; ) {
      const data = nextData(fd, at, size) ?? { start: size, end: size }
      digest.zeros(data.start - at)
      for (at = data.start; at < data.end; ) {
        const room = digest.room()
        const bytes = room.subarray(0, pread(fd, room.subarray(0, Math.min(room.length, data.end - at)), at))
        // The file became shorter meanwhile; the digest will tell.
        if (bytes.length === 0) return digest.digest()
        digest.update(bytes)
        take(bytes, at)
        at += bytes.length
      }
    }
    return digest.digest()
  } finally {
    digest.close()
  }
}

export const readContent = (fd: number): Buffer => readFileSync(fd)

export function writeContent(fd: number, bytes: Uint8Array, offset: number): void {
  for (let done = 0; done < bytes.length; )
    done += writeSync(fd, bytes, done, bytes.length - done, offset + done)
}
