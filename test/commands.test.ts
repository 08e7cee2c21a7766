import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { newProgram } from '../ctl/command-line.ts'
import { COMMON_OPTIONS, type Verb } from '../ctl/verb.ts'
import { VERBS } from '../ctl/verbs.ts'
import { documentBlocks, documentSpans } from './e2e/stage/documents.ts'
import { argvsOf, isVerb, optionsIn, saidIn, spansOf } from './e2e/stage/inline.ts'

const silent = (command: Command): void => {
  command.configureOutput({ writeErr: () => undefined, writeOut: () => undefined })
  for (const inner of command.commands) silent(inner)
}

/** What the command line of `puzzlectl` itself finds wrong; nothing is run. */
async function wrongWith(argv: readonly string[]): Promise<string[]> {
  const program = newProgram(VERBS, async () => undefined)
  silent(program)
  try {
    await program.parseAsync([...argv], { from: 'user' })
    return []
  } catch (error) {
    const { exitCode, message } = error as { exitCode?: number; message: string }
    return exitCode === 0 ? [] : [`puzzlectl ${argv.join(' ')}: ${message}`]
  }
}

async function faultsOf(said: Iterable<{ document: string; argv: readonly string[] }>): Promise<string[]> {
  const faults: string[] = []
  for (const { document, argv } of said)
    faults.push(...(await wrongWith(argv)).map((why) => `${document}: ${why}`))
  return faults
}

/** Options of another program, in a document that says which. */
const FOREIGN: Readonly<Record<string, readonly string[]>> = {
  'CONTRIBUTING.md': ['--part', '--', '--power-cut', '--machine-loss', '--write-docs', '--from', '--all'],
  'docs/benchmarks.md': ['--all', '--compare'],
  'docs/network.md': ['-Djavax'],
  'docs/decisions/privilege-split.md': ['--frozen-intrinsics'],
  'docs/operations.md': ['--xattrs-include'],
}

const flagsOf = (verb: Verb): string[] => [
  ...(verb.options ?? []).flatMap(([flags]) => flags.split(/[ ,]+/)),
  ...(verb.verbs ?? []).flatMap(flagsOf),
]

const daemon = fileURLToPath(new URL('../dist/puzzled.js', import.meta.url))
const askDaemon = (...args: string[]) => spawnSync(process.execPath, [daemon, ...args], { encoding: 'utf8' })

describe('what the documents say to puzzlectl', () => {
  const spans = documentSpans()

  it('in their blocks, its command line takes', async () => {
    const said = documentBlocks().flatMap(({ document, steps }) =>
      steps.flatMap(({ command }) =>
        argvsOf(command.replaceAll('\\\n', ' ')).map((argv) => ({ document, argv })),
      ),
    )
    expect(said.length).toBeGreaterThan(40)
    expect(await faultsOf(said)).toEqual([])
  })

  it('in their prose, its command line takes, or it is the name of a verb', async () => {
    const said = spans.flatMap((span) =>
      saidIn(span, VERBS).map((argv) => ({ document: span.document, argv })),
    )
    expect(said.length).toBeGreaterThan(40)
    const typed = said.filter(({ argv }) => argv.length > 0 && !isVerb(argv, VERBS))
    // Of a verb with an option, as `run --detach`, what else it needs is not said.
    const faults = (await faultsOf(typed)).filter((fault) => !/ --[\w-]+: .*missing required/.test(fault))
    expect(faults).toEqual([])
  })

  it('names options that it or the daemon has', () => {
    const known = [
      ...[...COMMON_OPTIONS].flatMap(([flags]) => flags.split(/[ ,]+/)),
      ...VERBS.flatMap(flagsOf),
      ...['-h', '--help', '-V', '--version'],
      ...(askDaemon('--help').stdout.match(/--[a-z-]+/g) ?? []),
    ]
    const unknown = spans.flatMap((span) =>
      optionsIn(span)
        .filter((option) => !known.includes(option) && FOREIGN[span.document]?.includes(option) !== true)
        .map((option) => `${span.document}: ${option}`),
    )
    expect(unknown).toEqual([])
  })
})

it('what they say to puzzled, it takes', () => {
  const said = documentSpans().filter(({ text }) => /^(sudo )?puzzled -/.test(text))
  for (const { text } of said) expect(askDaemon('--help').stdout).toContain(text.split(' ').at(1))
  expect(askDaemon('--frobnicate')).toMatchObject({ status: 2 })
})

describe('a command that is wrong would be noticed', () => {
  const said = (text: string) => spansOf('a.md', text).flatMap((span) => saidIn(span, VERBS))

  it.each([
    ['`puzzlectl frobnicate`', /unknown command/],
    ['`puzzlectl profile frobnicate`', /unknown command/],
    ['`sudo npx puzzlectl run --frobnicate -- sh --any`', /unknown option/],
    ['`puzzlectl show ID more`', /too many arguments/],
    ['`puzzlectl logs\n--tail`', /missing|argument/],
    ['`audit verify --haed X`', /unknown option/],
    ['`puzzlectl freeze|melt ID`', /unknown command/],
  ])('%s', async (text, why) => {
    const faults = await faultsOf(said(text).map((argv) => ({ document: 'a.md', argv })))
    expect(faults).toEqual([expect.stringMatching(why)])
  })

  it('and what is right is not', async () => {
    const right = said(
      '`puzzlectl freeze|thaw ID --json`, `npx puzzlectl approve fix -m why --only a`, `puzzlectl run … -- sh --any`',
    )
    expect(right).toHaveLength(4)
    expect(await faultsOf(right.map((argv) => ({ document: 'a.md', argv })))).toEqual([])
    expect(said('`run` `git commit -m x` `queue`')).toEqual([])
    expect(argvsOf("sudo npx puzzlectl run -- sh -c 'a b' && cat x   # puzzlectl no")).toEqual([
      ['run', '--', 'sh', '-c', 'a b'],
    ])
  })
})
