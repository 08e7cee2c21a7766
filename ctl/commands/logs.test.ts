import { describe, expect, it } from 'vitest'
import type { OutputEntry } from '../../daemon/contract/engine.ts'
import { lastLines } from './logs.ts'

const entries = (...texts: string[]): OutputEntry[] =>
  texts.map((text) => ({ at: '', stream: 'stdout', bytes: Buffer.from(text) }))
const last = (lines: number, ...texts: string[]): string =>
  lastLines(entries(...texts), lines)
    .map(({ bytes }) => Buffer.from(bytes).toString())
    .join('')

describe('the last lines', () => {
  it.each([
    [1, ['a\nb\nc\n'], 'c\n'],
    [2, ['a\nb\n', 'c\n'], 'b\nc\n'],
    [2, ['a\n', 'b', 'c\n'], 'a\nbc\n'],
    [1, ['a\nb', 'c'], 'bc'],
    [9, ['a\n', 'b\n'], 'a\nb\n'],
    [0, ['a\n'], ''],
    [1, ['a\n', '\n'], '\n'],
  ])('%i of %j', (lines, texts, expected) => expect(last(lines, ...texts)).toBe(expected))
})
