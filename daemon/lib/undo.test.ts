import { describe, expect, it } from 'vitest'
import { PuzzledError } from './errors.ts'
import { UndoStack } from './undo.ts'

const fails = (message: string) => (): void => {
  throw new Error(message)
}

describe('an undo stack', () => {
  it('runs last first, all of it, and reports every failure', async () => {
    const seen: string[] = []
    const undo = new UndoStack()
    undo.push('one', () => void seen.push('one'))
    undo.push('two', fails('no two'))
    undo.push('three', async () => void seen.push('three'))
    await expect(undo.unwind()).rejects.toThrow('Cannot undo "two"')
    expect(seen).toEqual(['three', 'one'])
    await undo.unwind()
    expect(seen).toHaveLength(2)
  })

  it('keeps what was handed over', async () => {
    const undo = new UndoStack()
    undo.push('one', fails('must not run'))
    undo.keep()
    await undo.unwind()
  })

  it('never hides the reason behind a failure of the cleaning up', async () => {
    const reason = new PuzzledError('no-space', 'The disk is full', {
      hint: 'Make room.',
      data: { path: '/x' },
    })
    const undo = new UndoStack()
    expect(await undo.unwindAfter(reason)).toBe(reason)
    undo.push('one', fails('no'))
    expect(await undo.unwindAfter(reason)).toMatchObject({
      ...{ code: 'no-space', hint: 'Make room.', data: { path: '/x' } },
      message: 'The disk is full; cleaning up failed as well: Cannot undo "one"',
    })
    undo.push('one', fails('no'))
    expect(await undo.unwindAfter(Object.assign(new Error('e'), { code: 'EIO' }))).toMatchObject({
      code: 'EIO',
    })
  })
})
