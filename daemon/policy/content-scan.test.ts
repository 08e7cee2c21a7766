import { deflateSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { scanContent } from './content-scan.ts'

const OBJECT = '.git/objects/e7/ef917ade3de08439dfb67efacb7ec81de5f791'

/** Compressed data in which no byte is zero, as small objects of git usually are, and one is a terminal escape. */
function packed(): Buffer {
  for (let tries = 0; tries < 10_000; tries++) {
    const bytes = deflateSync(`blob 40\0${'x'.repeat(20)}${tries}`)
    if (!bytes.includes(0) && bytes.includes(0x1b)) return bytes
  }
  throw new Error('No such data was found')
}

describe('a loose object of git', () => {
  const rules = (path: string, bytes: Buffer): string[] =>
    scanContent(Buffer.from(path), bytes).findings.map(({ rule }) => rule)

  it('is data, not a text with terminal escapes', () => {
    expect(scanContent(Buffer.from(OBJECT), packed())).toMatchObject({ binary: true, findings: [] })
    expect(rules(`sub/${OBJECT}`, packed())).toEqual([])
  })

  it('is one only in its place and with its header', () => {
    expect(rules('notes', packed())).toContain('terminal-escape')
    expect(rules('.git/objects/e7/short', packed())).toContain('terminal-escape')
    expect(rules(OBJECT, Buffer.from('a text with \x1b[2J'))).toContain('terminal-escape')
  })
})
