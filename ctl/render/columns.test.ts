import { describe, expect, it } from 'vitest'
import { columnsText, cutText } from './columns.ts'
import { plain } from './paint.ts'

describe('a table', () => {
  it('is as wide as its cells, ideographs counted twice, marks not', () =>
    expect(
      columnsText(
        ['A', 'B'],
        [
          ['日本', 'x'],
          ['e\u0301', 'y'],
          ['abc', 'z'],
        ],
        plain,
      ),
    ).toBe('A     B\n日本  x\ne\u0301     y\nabc   z\n'))

  it('is never wider than the screen', () => {
    expect(columnsText(['ID', 'COMMAND'], [['a', 'sleep 100']], plain, 10)).toBe('ID  COMMA…\na   sleep…\n')
    expect(cutText('日本日本', 5)).toBe('日本…')
    expect(cutText('日本日本', 8)).toBe('日本日本')
  })
})
