import { describe, expect, it } from 'vitest'
import { commandRequestOf } from './requests.ts'

/** As the wire library hands out a variant. */
const AS = [{ type: 'a', child: [{ type: 's', child: [] }] }]
const asked = (command: readonly string[]) => () => commandRequestOf([['command', [AS, [command]]]]).command

describe('the command of a request', () => {
  it('may be as long as the kernel takes one: a prompt, the files of a project', () => {
    const prompt = ['agent', '-p', 'x'.repeat(131_071)]
    expect(asked(prompt)()).toEqual(prompt)
    const files = Array.from({ length: 20_000 }, (_, index) => `a/path/of/file-${index}`)
    expect(asked(files)()).toEqual(files)
  })

  it('is refused where no start could take it', () => {
    expect(asked(['x'.repeat(131_072)])).toThrow(/command/)
    expect(asked(Array<string>(21).fill('x'.repeat(100_000)))).toThrow('at most 2097152 bytes together')
    expect(asked([])).toThrow(/command/)
  })
})
