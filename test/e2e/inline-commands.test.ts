import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { VERBS } from '../../ctl/verbs.ts'
import { PROFILE_EXAMPLE } from '../../tools/man/puzzle-profile.ts'
import { needs, program, root } from '../tier/needs.ts'
import { documentSpans } from './stage/documents.ts'
import { isVerb, saidIn } from './stage/inline.ts'
import { repository, Stage } from './stage/stage.ts'

const PATIENCE = 300_000

/** Verbs that a document speaks of without arguments, and that need none. */
const BARE = [
  'ls',
  'doctor',
  'gc',
  'queue',
  'profile list',
  'policy list',
  'audit verify',
  'audit key',
  '--version',
]

/** Commands that this machine does not run, and who does. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  prove: 'test/e2e/prove.test.ts',
  'run --detach': 'needs the daemon: test/e2e/detached.test.ts',
  events: 'needs the daemon: test/e2e/bus.test.ts',
  metrics: 'needs the daemon: test/e2e/metrics.test.ts',
  'review oops': 'asks a person: README.md shows it, test/e2e/review.test.ts types the answers',
  'policy build house.rego -e house/decision -o house.wasm': 'needs opa: ctl/policy-verbs.test.ts',
  'signal ID NAME': 'nothing runs in a held branch: test/e2e/verbs.test.ts',
}

/** What does not end with 0: a branch that was rebased is held, and the profile lets nobody reach that host. */
const STATUS: Readonly<Record<string, number>> = {
  'rebase ID': 120,
  'net test <branch|profile> <METHOD> <url>': 121,
}

let stage: Stage
let project: string
let head: string

/** A held branch, a landed commit, a profile, a changeset and a policy: what the prose takes for granted. */
beforeAll(async () => {
  stage = new Stage()
  project = stage.project('app')
  cpSync(join(repository, 'policies/dist/commit.wasm'), join(project, 'house.wasm'))
  writeFileSync(join(project, 'backend.yaml'), PROFILE_EXAMPLE)
  writeFileSync(join(project, 'changes.yaml'), 'changes:\n  - path: src/new.ts\n    kind: add\n')
  stage.give(project)
  const make = (name: string, then: string) =>
    stage.type(
      `sudo puzzlectl run --name ${name} --then ${then} -- sh -c 'echo ${name} > ${name}.txt'`,
      project,
    )
  for (const [name, then] of [
    ['landed', 'gate'],
    ['fix', 'hold'],
  ] as const)
    expect(await make(name, then)).toMatchObject({ status: 0 })
  const { text } = await stage.type('sudo puzzlectl audit verify --json', project)
  const { records, root: tree } = JSON.parse(text)
  head = `${records}:${tree}`
}, PATIENCE)
afterAll(() => stage.strike(), PATIENCE)

const filled = (argv: readonly string[]): string =>
  argv
    .join(' ')
    .replace(/\bID\b/g, 'fix')
    .replace(/\bPATH\b/g, 'landed.txt')
    .replace(/<branch\|profile>/g, 'standard')
    .replace(/<METHOD>/g, 'GET')
    .replace(/<url>/g, 'https://example.com/')
    .replace(/--changeset FILE/g, '--changeset changes.yaml')
    .replace(/\bDIR\b/g, '/var/lib/puzzled')
    .replace(/\bRECORDS:ROOT\b/g, head)
    .replace(/\bRECORDS?\b/g, '1')
    .replace(/ COMMAND$/g, ' true')

const typed = new Map(
  documentSpans()
    .flatMap((span) => saidIn(span, VERBS))
    .filter((argv) => argv.length > 0 && (!isVerb(argv, VERBS) || BARE.includes(argv.join(' '))))
    .map((argv) => [argv.join(' '), argv]),
)
const check = needs(root, program('gcc'), program('git'))

for (const [words, argv] of typed)
  if (!(words in ELSEWHERE))
    check(
      `puzzlectl ${words}`,
      async () => {
        const shown = await stage.type(`sudo puzzlectl ${filled(argv)}`, project)
        expect(shown, words).toMatchObject({ status: STATUS[words] ?? 0 })
      },
      PATIENCE,
    )

check('the table of what runs elsewhere names nothing that is in no document', () =>
  expect(
    Object.keys(ELSEWHERE).filter((words) => !typed.has(words) && !isVerb(words.split(' '), VERBS)),
  ).toEqual([]),
)
