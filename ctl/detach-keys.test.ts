import { describe, expect, it } from 'vitest'
import { DetachKeys } from './detach-keys.ts'

const typed = (...keys: readonly (readonly [text: string, at: number])[]) => {
  const watch = new DetachKeys()
  let pass = ''
  for (const [text, at] of keys) {
    const step = watch.type(Buffer.from(text), at)
    pass += step.pass.toString()
    if (step.detached) return { pass, detached: true }
  }
  return { pass, detached: false }
}
const K = '\u001d'

describe('the keys that detach', () => {
  it('are one key three times within a second', () =>
    expect(typed([K, 0], [K, 400], [K, 900])).toEqual({ pass: K + K, detached: true }))
  it('may come at once, behind other text', () =>
    expect(typed([`ls\r${K}${K}${K}rest`, 0])).toEqual({ pass: `ls\r${K}${K}`, detached: true }))
  it('are no sequence when they come slowly', () =>
    expect(typed([K, 0], [K, 600], [K, 1200])).toEqual({ pass: K + K + K, detached: false }))
  it('are no sequence with something between them', () =>
    expect(typed([K, 0], ['x', 1], [K, 2], [K, 3])).toEqual({ pass: `${K}x${K}${K}`, detached: false }))
})
