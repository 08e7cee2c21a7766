import { describe, expect, it } from 'vitest'
import { columnsText } from './columns.ts'
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
  })

  it('goes on below its last column where nothing may be lost', () =>
    expect(columnsText(['ID', 'WHAT'], [['a', 'six words, and none is cut']], plain, 20, 'fold')).toBe(
      'ID  WHAT\na   six words, and\n    none is cut\n',
    ))

  it('goes on at the left where its last column would be too narrow to read', () =>
    expect(columnsText(['ATTACK', 'BY'], [['leave a git hook', 'a rule']], plain, 20, 'fold')).toBe(
      'ATTACK            BY\nleave a git hook  a\n    rule\n',
    ))
})
