import { describe, expect, it } from 'vitest'
import { colours } from './paint.ts'
import { cellWidth, cutText, foldText } from './width.ts'

describe('the width of a terminal', () => {
  it('counts ideographs and pictures twice, marks and colours not', () => {
    expect(['日本', '😀', 'e\u0301', colours.red('abc')].map(cellWidth)).toEqual([4, 2, 1, 3])
    expect(cutText('日本日本', 5)).toBe('日本…')
    expect(cutText('日本日本', 8)).toBe('日本日本')
  })

  it('is that of lines, which go on below what they say', () => {
    expect(foldText('  command  sleep for a while\n', 24, 11)).toBe(
      '  command  sleep for a\n           while\n',
    )
    expect(foldText('word word', undefined, 4)).toBe('word word')
  })

  it('is counted without colours, which go on with the text', () =>
    expect(foldText(colours.red('one two three'), 8, 2)).toBe('\u001b[31mone two\n  three\u001b[39m'))

  it('breaks no path: a terminal does, and it can still be copied', () => {
    expect(foldText('at /a/path/that/does/not/fit, it says', 12, 4)).toBe(
      'at /a/path/that/does/not/fit, it\n    says',
    )
    expect(foldText('文件夹 内容 长文件', 10, 2)).toBe('文件夹\n  内容\n  长文件')
  })

  it('may be smaller than the indentation', () =>
    expect(foldText('a b c d e f', 6, 40)).toBe('a b c\n   d e\n   f'))
})
