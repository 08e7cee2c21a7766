import { createHash, hash } from 'node:crypto'
import { nextData, pread } from '../kernel/file-data.ts'

/** Contents of open files: equal or not, and their SHA-256. One pair of buffers serves every file of a walk. */

const SMALL = 128 * 1024
const BLOCK = 1024 * 1024
const left = Buffer.allocUnsafeSlow(BLOCK)
const right = Buffer.allocUnsafeSlow(BLOCK)
const zeros = Buffer.alloc(BLOCK)

/**
 * Compares two files byte by byte, whatever their times say: an agent can set a time back. Digests are
 * computed only where something depends on them.
 */
export function compareContent(
  before: { fd: number; size: number },
  after: { fd: number; size: number },
): { equal: true; sha256: () => string } | { equal: false; before: string; after: string } {
  if (before.size <= SMALL && after.size <= SMALL) {
    const old = left.subarray(0, pread(before.fd, left.subarray(0, before.size), 0))
    const fresh = right.subarray(0, pread(after.fd, right.subarray(0, after.size), 0))
    if (old.equals(fresh)) return { equal: true, sha256: () => sha256(after.fd, after.size) }
    return { equal: false, before: hash('sha256', old, 'hex'), after: hash('sha256', fresh, 'hex') }
  }
  if (before.size === after.size && sameBlocks(before.fd, after.fd, after.size))
    return { equal: true, sha256: () => sha256(after.fd, after.size) }
  return {
    equal: false,
    before: sha256(before.fd, before.size),
    after: sha256(after.fd, after.size),
  }
}

/** Ranges that are holes on both sides are equal without being read. */
function sameBlocks(before: number, after: number, size: number): boolean {
  for (let at = 0; at < size; ) {
    const old = nextData(before, at, size)
    const fresh = nextData(after, at, size)
    at = Math.min(old?.start ?? size, fresh?.start ?? size)
    if (at >= size) return true
    const length = Math.min(BLOCK, size - at)
    const a = left.subarray(0, pread(before, left.subarray(0, length), at))
    const b = right.subarray(0, pread(after, right.subarray(0, length), at))
    if (!a.equals(b)) return false
    at += length
  }
  return true
}

/** SHA-256 of the first `size` bytes. Holes are hashed as the zeros that they are, without reading them. */
export function sha256(fd: number, size: number): string {
  if (size <= SMALL) return hash('sha256', left.subarray(0, pread(fd, left.subarray(0, size), 0)), 'hex')
  const digest = createHash('sha256')
  for (let at = 0; at < size; ) {
    const data = nextData(fd, at, size)
    const hole = data?.start ?? size
    while (at < hole) {
      const length = Math.min(BLOCK, hole - at)
      digest.update(zeros.subarray(0, length))
      at += length
    }
    if (data === undefined) break
    while (at < data.end) {
      const count = pread(fd, left.subarray(0, Math.min(BLOCK, data.end - at)), at)
      if (count === 0) return digest.digest('hex')
      digest.update(left.subarray(0, count))
      at += count
    }
  }
  return digest.digest('hex')
}
