import { execFileSync } from 'node:child_process'
import { appendFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { afterEach, beforeEach, expect } from 'vitest'
import { Outside } from '../root/network-rig.ts'
import { needs, program, root } from '../tier/needs.ts'
import { shapeOf } from './stage/shape.ts'
import { type Person, repository, type Shown, Stage } from './stage/stage.ts'

const README = join(repository, 'README.md')
const EXAMPLE = join(repository, 'docs/examples/coding-agent')
const KEY = 'sk-the-real-key-of-the-model'
const BROKEN = 'def add(a, b):\n    return a - b\n'
const MENDED = 'def add(a, b):\n    return a + b\n'
const TESTS = `import unittest
from calc import add


class Adding(unittest.TestCase):
    def test_two_and_two(self):
        self.assertEqual(add(2, 2), 4)
`

interface Asked {
  host: string
  path: string
  headers: IncomingMessage['headers']
  body: Record<string, unknown>
}

let stage: Stage
let outside: Outside
let asked: Asked[]
let transcript: string[]
let place: string

beforeEach(async () => {
  stage = new Stage()
  outside = new Outside()
  asked = []
  transcript = []
  outside.handler = answer
  await outside.listen()
  appendFileSync('/etc/hosts', `${outside.address} model.example.com tracker.example.com\n`)
  writeFileSync(stage.path('authority.pem'), outside.authority.certificate)
  stage.environment.NODE_EXTRA_CA_CERTS = stage.path('authority.pem')
  mkdirSync('/etc/puzzled', { recursive: true })
  writeFileSync('/etc/puzzled/model.key', `${KEY}\n`, { mode: 0o600 })
  place = await project()
})
afterEach(async () => {
  await outside.close()
  stage.strike()
})

/** A repository of alice's with a bug, a test that shows it, and the agent. */
async function project(): Promise<string> {
  const path = stage.project('calc')
  cpSync(EXAMPLE, join(path, 'agent'), { recursive: true })
  writeFileSync(join(path, 'calc.py'), BROKEN)
  writeFileSync(join(path, 'test_calc.py'), TESTS)
  writeFileSync(join(path, '.gitignore'), '__pycache__/\n')
  stage.give(path)
  const author = '-c user.name=Alice -c user.email=alice@example.com'
  const made = await stage.type(
    `git init -q -b main && git add -A && git ${author} commit -qm 'Add two numbers'`,
    path,
  )
  expect(made.text).toBe('')
  return path
}

/** The model and the tracker. The model is a table: it knows one bug. */
function answer(request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>
    asked.push({ host: request.headers.host ?? '', path: request.url ?? '', headers: request.headers, body })
    const edits = { 'calc.py': MENDED }
    response.setHeader('content-type', 'application/json')
    response.end(
      JSON.stringify(
        request.url === '/issues' ? { number: 1 } : { edits, summary: 'Add instead of subtracting' },
      ),
    )
  })
}

const hostsAsked = (): string[] => asked.map(({ host, path }) => host + path)

/** One line of the demo: typed, shown, kept. */
async function line(who: Person, command: string): Promise<Shown> {
  const shown = await stage.type(command, place, who)
  transcript.push(`${who}$ ${command}\n${shown.text}`)
  return shown
}

const file = (name: string): string => readFileSync(join(place, name), 'utf8')
const history = (): string =>
  execFileSync('git', ['-c', 'safe.directory=*', 'log', '--format=%s'], { cwd: place, encoding: 'utf8' })

const check = needs(root, program('gcc'), program('git'), program('python3'))
check('a coding agent works, is looked at, lands, and is taken back', async () => {
  // It runs: the model is asked at once, with the key that the agent never held; everything else waits.
  const run = await line(
    'alice',
    'sudo puzzlectl run --name fix --profile agent/profile.yaml -- python3 agent/agent.py',
  )
  expect([run.status, run.text]).toEqual([120, expect.stringContaining('issue: 202 queued')])
  expect(hostsAsked()).toEqual(['model.example.com/v1/messages'])
  expect(asked[0]?.headers.authorization).toBe(`Bearer ${KEY}`)
  expect([file('calc.py'), history()]).toEqual([BROKEN, 'Add two numbers\n'])

  // A colleague looks and approves: files and history land, the issue is sent, once.
  const diff = await line('bob', 'sudo puzzlectl diff fix | tail -8')
  expect(diff.text).toContain('+    return a + b')
  const queue = await line('bob', 'sudo puzzlectl queue ls fix')
  expect(queue.text).toContain('https://tracker.example.com/issues')
  const approved = await line('bob', "sudo puzzlectl approve fix -m 'the test shows it'")
  expect(approved.status, approved.text).toBe(0)
  expect([file('calc.py'), history()]).toEqual([MENDED, 'Add instead of subtracting\nAdd two numbers\n'])
  expect(hostsAsked()).toEqual(['model.example.com/v1/messages', 'tracker.example.com/issues'])
  expect(asked[1]?.headers['idempotency-key']).toMatch(/\S/)

  // Who did what, when and why is on record, and the record has not been touched.
  const trace = await line('bob', "sudo puzzlectl audit trace fix | awk 'NR > 1 { print $3 }' | paste -sd' '")
  for (const kind of ['fork', 'start', 'exit', 'verdict', 'approve', 'committed', 'replayed'])
    expect(trace.text).toContain(kind)
  expect((await line('bob', 'sudo puzzlectl audit verify')).status).toBe(0)

  // And back: file and history are as before.
  const commit = /committed as (c\w+)/.exec(approved.text)?.[1] ?? ''
  const reverted = await line('alice', `sudo puzzlectl revert ${commit}`)
  expect(reverted.status, reverted.text).toBe(0)
  expect([file('calc.py'), history()]).toEqual([BROKEN, 'Add two numbers\n'])
  expect((await line('alice', 'git status --short')).text).toBe('')
  expect(JSON.stringify(transcript)).not.toContain(KEY)
  expectRecorded(transcript.join(''))
})

/** The demo of the README is this transcript; PUZZLED_WRITE_DOCS=1 records it anew. */
function expectRecorded(shown: string): void {
  const text = shown.replaceAll(stage.root, '')
  const document = readFileSync(README, 'utf8')
  const [, before = '', recorded = '', after = ''] =
    /^([\s\S]*<!-- shown by: test\/e2e\/coding-agent.test.ts -->\n```console\n)([\s\S]*?)(```\n<!-- end of the demo -->[\s\S]*)$/.exec(
      document,
    ) ?? []
  if (process.env.PUZZLED_WRITE_DOCS !== undefined) writeFileSync(README, before + text + after)
  else
    expect(demoShape(text), 'the demo is stale: record it with PUZZLED_WRITE_DOCS=1').toBe(
      demoShape(recorded),
    )
}

/** How many objects git adds and refreshes hangs on the seconds of the clock: directories by hash, an index of the same second. */
const demoShape = (text: string): string =>
  shapeOf(text)
    .replace(/\+\d+ ~\d+ -0 /g, '+N ~N -0 ')
    .replace(/: \d+ paths as before/g, ': N paths as before')
