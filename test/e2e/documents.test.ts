import { execFileSync } from 'node:child_process'
import { chownSync, cpSync, existsSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { PROFILE_EXAMPLE } from '../../tools/man/puzzle-profile.ts'
import { needs, program, root } from '../tier/needs.ts'
import type { Block, Step } from './stage/blocks.ts'
import { serve } from './stage/bus.ts'
import { documentBlocks } from './stage/documents.ts'
import { elsewhere } from './stage/elsewhere.ts'
import { shapeOf } from './stage/shape.ts'
import { SITUATIONS } from './stage/situations.ts'
import { PEOPLE, type Person, repository, Stage } from './stage/stage.ts'

/** A document is a long test: it is read from its first line to its last. */
const PATIENCE = 900_000
/** Mounts, a compiler and the daemon's last words: on a machine that is busy with others they take their time. */
const SETTING_UP = 300_000

/** Documents for machines on which the daemon is installed. The others need nothing but a clone. */
const WITH_DAEMON = new Set(['docs/operations.md', 'docs/metrics.md'])

let stage: Stage
beforeEach(() => {
  stage = new Stage()
}, SETTING_UP)
afterEach(() => stage.strike(), SETTING_UP)

/** What a newcomer has after `git clone` and `npm ci`; the latter needs the package registry and has been done here. */
function cloned(): string {
  const place = stage.path('home/puzzled')
  if (existsSync(join(repository, '.git')))
    execFileSync('git', ['-c', 'safe.directory=*', 'clone', '-q', '--depth=1', `file://${repository}`, place])
  else cpSync(repository, place, { recursive: true, filter: (path) => !/\/(node_modules|dist)$/.test(path) })
  for (const name of ['node_modules', 'dist']) symlinkSync(stage.path(`app/${name}`), join(place, name))
  stage.program('npm', '[ "$*" = ci ] || { echo "npm $*: not on this stage" >&2; exit 64; }')
  stage.environment.npm_config_cache = stage.folder('npm-cache')
  stage.environment.npm_config_offline = 'true'
  stage.give(place)
  return place
}

/** What a reader who wants to have a profile checked has: the example of its manual page. */
const PROFILE_FILE = 'backend.yaml'

/** Words that a reader replaces: the newest branch and the newest commit that were shown. */
class Names {
  #id = 'ID'
  #commit = 'COMMIT'

  learn(text: string): void {
    this.#id = [...text.matchAll(/\bbranch (\w+):/g)].at(-1)?.[1] ?? this.#id
    this.#commit = [...text.matchAll(/committed as (c\w+)/g)].at(-1)?.[1] ?? this.#commit
  }

  fill(command: string): string {
    return command
      .replace(/\bID\b/g, this.#id)
      .replace(/\bCOMMIT\b/g, this.#commit)
      .replace(/\bFILE\b/g, PROFILE_FILE)
      .replace(/ COMMAND$/, ' true')
  }
}

/** Files that the documents speak of: a profile, and something to make. */
function prepare(place: string): void {
  writeFileSync(join(place, PROFILE_FILE), PROFILE_EXAMPLE)
  writeFileSync(join(place, 'Makefile'), 'test:\n\techo ok > tested.txt\n')
  for (const name of [PROFILE_FILE, 'Makefile']) chownSync(join(place, name), PEOPLE.alice, PEOPLE.alice)
}

const isPerson = (name: string): name is Person => name in PEOPLE

async function perform(block: Block, step: Step, place: string, names: Names): Promise<void> {
  if (elsewhere(block.document, step.command) !== undefined) return
  const where = `${block.document}:${step.line}: ${step.command}`
  if (!isPerson(step.who)) throw new Error(`${where}: nobody is called ${step.who}`)
  const shown = await stage.type(names.fill(step.command), place, step.who)
  names.learn(shown.text)
  expect(shown.status, `${where}\n${shown.text}`).toBe(step.status)
  if (step.output !== undefined)
    expect(shapeOf(shown.text.replaceAll(stage.root, '')), where).toBe(shapeOf(step.output))
}

const blocks = documentBlocks().filter(({ steps, shownBy }) => steps.length > 0 && shownBy === undefined)
const check = needs(root, program('gcc'), program('git'), program('dbus-daemon'), program('dbus-send'))

describe.each([...new Set(blocks.map(({ document }) => document))])('%s', (document) => {
  check(
    'every command does what it says',
    async () => {
      const daemon = WITH_DAEMON.has(document)
      if (daemon) serve(stage)
      const place = daemon ? stage.project('app') : cloned()
      const names = new Names()
      prepare(place)
      for (const block of blocks.filter((one) => one.document === document)) {
        if (block.situation !== undefined) await SITUATIONS[block.situation]?.(stage, place)
        for (const step of block.steps) await perform(block, step, place, names)
      }
    },
    PATIENCE,
  )
})
