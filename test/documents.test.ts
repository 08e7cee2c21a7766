import { describe, expect, it } from 'vitest'
import { blocksOf } from './e2e/stage/blocks.ts'
import { documentBlocks } from './e2e/stage/documents.ts'
import { bare, ELSEWHERE } from './e2e/stage/elsewhere.ts'
import { shapeOf } from './e2e/stage/shape.ts'
import { SITUATIONS } from './e2e/stage/situations.ts'

const blocks = documentBlocks()

/** Blocks of these are shown; commands stand in `sh` and `console` blocks only. */
const LANGUAGES = ['sh', 'console', 'text', 'yaml', 'json', 'rego', 'js', 'mermaid', 'python', 'xml']

describe('the blocks of the documents', () => {
  it('say what they are', () => {
    const strange = blocks.filter(({ language }) => !LANGUAGES.includes(language))
    expect(strange.map(({ document, line }) => `${document}:${line}`)).toEqual([])
  })

  it('hide no command in a block that nobody runs', () => {
    const typed = /^\s*(\w*\$ |(sudo|npx|npm|puzzlectl|systemctl) [a-z-])/m
    const shown = blocks.filter(({ language }) => language === 'text')
    const hidden = shown.filter(({ body }) => typed.test(body))
    expect(hidden.map(({ document, line }) => `${document}:${line}`)).toEqual([])
  })

  it('name situations that can be set up, and tests that exist', () => {
    const unknown = blocks.flatMap(({ situation }) =>
      situation === undefined || situation in SITUATIONS ? [] : [situation],
    )
    expect(unknown).toEqual([])
    expect([...new Set(blocks.flatMap(({ shownBy }) => shownBy ?? []))]).toEqual([
      'test/e2e/coding-agent.test.ts',
      'test/e2e/client.test.ts',
    ])
    const programs = blocks.filter(({ language }) => language === 'js')
    expect(programs.map(({ shownBy }) => shownBy)).toEqual(['test/e2e/client.test.ts'])
  })

  it('contain every command that the table says is run elsewhere', () => {
    const all = blocks.flatMap(({ document, steps }) =>
      steps.map(({ command }) => `${document}: ${bare(command)}`),
    )
    expect(ELSEWHERE.filter(({ document, command }) => !all.includes(`${document}: ${command}`))).toEqual([])
  })
})

describe('reading a block', () => {
  const steps = (text: string) => blocksOf('a.md', text).flatMap((block) => block.steps)

  it('takes lines of sh, without comments, and joins those that go on', () => {
    expect(steps('```sh\n# first\na b \\\n  c\n\nd   # exit status 3\n```\n')).toEqual([
      { line: 3, who: 'alice', command: 'a b \\\n  c', status: 0 },
      { line: 6, who: 'alice', command: 'd   # exit status 3', status: 3 },
    ])
  })

  it('takes commands of a transcript with who typed them and what was shown', () => {
    expect(steps('```console\nbob$ a\none\ntwo\n$ b\n```')).toMatchObject([
      { who: 'bob', command: 'a', output: 'one\ntwo\n' },
      { who: 'alice', command: 'b', output: '' },
    ])
  })

  it('knows the note in front, for one block only', () => {
    const text = '<!-- situation: stuck -->\n```sh\na\n```\n```sh\nb\n```\n'
    expect(blocksOf('a.md', text).map(({ situation }) => situation)).toEqual(['stuck', undefined])
  })

  it('refuses a block without an end', () =>
    expect(() => blocksOf('a.md', '```sh\na\n')).toThrow(/without an end/))
})

it('two runs that differ by chance have one shape, two that differ in what they say have not', () => {
  expect(shapeOf('branch abcdefghij: +1 (2.7 kB); committed as c123abc456de at 2026-01-01T00:00:00.1Z')).toBe(
    shapeOf('branch zyxwvutsrq: +1 (13 B); committed as cqqqqqqqqqqq at 2027-02-03T04:05:06Z'),
  )
  expect(shapeOf('committed as c123abc456de')).not.toBe(shapeOf('held: it waits for a person'))
})
