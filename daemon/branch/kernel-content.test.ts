import { createHash } from 'node:crypto'
import {
  closeSync,
  ftruncateSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PIECE } from './content-hash.ts'
import { copyContent, digestContent, SIDE_BYTES } from './kernel-content.ts'
import { SideHash } from './side-hash.ts'

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

describe('the content of a file', () => {
  let place = ''
  const open: number[] = []
  beforeEach(() => {
    place = mkdtempSync(join(tmpdir(), 'content-'))
  })
  afterEach(() => {
    for (const fd of open.splice(0)) closeSync(fd)
    rmSync(place, { recursive: true })
  })
  const file = (name: string): number => {
    const fd = openSync(join(place, name), 'w+')
    open.push(fd)
    return fd
  }

  it.each([
    ['below one piece', 3_000_000, [0, 1_500_000]],
    ['of several pieces', 3 * PIECE + 5, [0, PIECE - 3, 2 * PIECE]],
    [
      'that is hashed beside its copy',
      SIDE_BYTES + 12_345,
      [0, PIECE, PIECE + 4096, 5 * PIECE + 7, SIDE_BYTES],
    ],
  ])('%s is copied, and its digest is that of what was written', { timeout: 240_000 }, (_, size, places) => {
    const [from, to] = [file('from'), file('to')]
    ftruncateSync(from, size)
    for (const at of places) writeSync(from, Buffer.from(`data at ${at}`), 0, undefined, at)
    const copied = copyContent(from, to)
    const written = readFileSync(join(place, 'to'))
    expect(written.length).toBe(size)
    expect(written.equals(readFileSync(join(place, 'from')))).toBe(true)
    expect(copied).toBe(sha256(written))
    expect(digestContent(to)).toBe(copied)
    expect(statSync(join(place, 'to')).blocks * 512).toBeLessThan(size)
  })

  it('takes no more memory for several large files than for one', { timeout: 240_000 }, () => {
    const fd = file('large')
    ftruncateSync(fd, SIDE_BYTES)
    const before = process.memoryUsage().arrayBuffers
    const digests = [1, 2, 3, 4, 5].map(() => digestContent(fd))
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(6 * PIECE)
    expect(new Set(digests).size).toBe(1)
  })
})

describe('a hash beside the thread that has the content', () => {
  it('is that of all pieces and holes in their order', () => {
    const hash = new SideHash()
    const all: Buffer[] = []
    for (let n = 0; n < 200; n++) {
      const piece = hash.room().subarray(0, (n % 64) + 1)
      piece.fill(n)
      all.push(Buffer.from(piece))
      hash.update(piece)
      hash.zeros(n % 7 === 0 ? n : 0)
      all.push(Buffer.alloc(n % 7 === 0 ? n : 0))
    }
    expect(hash.digest()).toBe(sha256(Buffer.concat(all)))
    hash.close()
  })

  it('begins anew with each content, also behind one that was left in the middle', () => {
    const digestsOf = (text: string): string => {
      const hash = new SideHash()
      const length = hash.room().write(text)
      hash.update(hash.room().subarray(0, length))
      const digest = hash.digest()
      hash.close()
      return digest
    }
    for (const text of ['one', 'two', 'left', 'three']) {
      if (text !== 'left') expect(digestsOf(text)).toBe(sha256(Buffer.from(text)))
      else {
        const hash = new SideHash()
        hash.update(hash.room().fill(7))
        hash.close()
      }
    }
  })

  it('of nothing is that of nothing', () => {
    const hash = new SideHash()
    expect(hash.digest()).toBe(sha256(Buffer.alloc(0)))
    hash.close()
  })
})
