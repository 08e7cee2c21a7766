import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { needs, program, root } from '../tier/needs.ts'
import { PEOPLE, Stage } from './stage/stage.ts'
import { noTypist, typing } from './typist.ts'

const PATIENCE = 300_000
const it = needs(root, program('gcc'), program('git'), program('curl'), noTypist)

let stage: Stage
let project: string
beforeEach(() => {
  stage = new Stage()
  project = stage.project('app')
  stage.project('told')
}, PATIENCE)
afterEach(() => stage.strike(), PATIENCE)

const told = (name: string): string => readFileSync(join(stage.home, 'told', name), 'utf8').trim()
/** Who a program is: its numbers, its groups, its home, whether the file that it got is its own. */
const TELL = (name: string): string =>
  `echo "$(id -u) $(id -g) $(id -G) $HOME $(id -u) $(grep CapEff /proc/self/status | cut -f 2)" > ${stage.home}/told/${name}`
const ALICE = `${PEOPLE.alice} ${PEOPLE.alice} ${PEOPLE.alice}`
const NOTHING = '0000000000000000'

describe('a program that the person who typed sudo has named', () => {
  it(
    'as editor of a request has their rights, and what it writes is what is sent',
    async () => {
      const url = 'https://api.github.com/repos/a/b/issues'
      const asked = `curl -sS -m 20 -o /dev/null -d '{"title":"old"}' ${url}`
      const ran = await stage.type(`sudo puzzlectl run --name asks -- ${asked}`, project)
      expect(ran.text).toContain('1 queued request')
      const { text } = await stage.type('sudo puzzlectl queue ls asks --json', project)
      const [{ id }] = JSON.parse(text) as [{ id: string }]
      stage.program(
        'editor',
        `${TELL('editor')}\nls -ln "$1" | cut -d' ' -f 1,3 >> ${stage.home}/told/editor
ls "$(dirname "$1")" 2>/dev/null && echo 'the directory can be read' >> ${stage.home}/told/editor
touch "$(dirname "$1")/other" 2>/dev/null && echo 'the directory can be written' >> ${stage.home}/told/editor
sed -i.bak s/old/new/ "$1" 2>/dev/null || { changed=$(sed s/old/new/ "$1"); printf '%s' "$changed" > "$1"; }`,
      )
      const edited = await stage.type(`EDITOR=editor sudo puzzlectl queue edit asks ${id}`, project)
      expect(edited).toMatchObject({ status: 0, text: expect.stringContaining('is changed') })
      expect(told('editor').split('\n')).toEqual([
        `${ALICE} ${stage.home} ${PEOPLE.alice} ${NOTHING}`,
        `-rw------- ${PEOPLE.alice}`,
      ])
      const shown = await stage.type(`sudo puzzlectl queue show asks ${id}`, project)
      expect(shown.text).toContain('"title": "new"')
    },
    PATIENCE,
  )

  it(
    'as editor that fails changes nothing',
    async () => {
      const asked = 'curl -sS -m 20 -o /dev/null -d x https://api.github.com/repos/a/b/issues'
      await stage.type(`sudo puzzlectl run --name asks -- ${asked}`, project)
      const before = await stage.type('sudo puzzlectl queue ls asks --json', project)
      const [{ id }] = JSON.parse(before.text) as [{ id: string }]
      const edited = await stage.type(`EDITOR=false sudo puzzlectl queue edit asks ${id}`, project)
      expect(edited).toMatchObject({ status: 2, text: expect.stringContaining('ended with status 1') })
      expect((await stage.type('sudo puzzlectl queue ls asks --json', project)).text).toBe(before.text)
    },
    PATIENCE,
  )

  it(
    'as pager has their rights; one of root itself keeps its own',
    async () => {
      await stage.type("sudo puzzlectl run --name fix --then hold -- sh -c 'echo new > a.txt'", project)
      stage.program('pager', `${TELL('pager')}\nexec cat`)
      const quoted = (words: readonly string[]): string =>
        words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ')
      const atTerminal = quoted(typing([], 'sudo', 'puzzlectl', 'diff', 'fix'))
      const { text } = await stage.type(`PAGER=pager ${atTerminal}`, project)
      expect(text).toContain('+new')
      expect(told('pager')).toBe(`${ALICE} ${stage.home} ${PEOPLE.alice} ${NOTHING}`)
      const asRoot = typing([], 'env', 'PAGER=pager', 'puzzlectl', 'diff', 'fix')
      expect(stage.asRoot(asRoot[0] ?? '', ...asRoot.slice(1))).toContain('+new')
      expect(told('pager')).toMatch(/^0 0 .* 0 0*[1-9a-f]/)
    },
    PATIENCE,
  )
})
