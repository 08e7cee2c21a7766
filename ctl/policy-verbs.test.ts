import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../daemon/lib/assets.ts'

/** The verbs as shipped: the built program, in its own process. */
const program = join(packageRoot(), 'dist/puzzlectl.js')
const call = (...args: string[]): Promise<{ status: number; out: string; err: string }> =>
  new Promise((resolve) => {
    execFile(process.execPath, [program, ...args], (error, out, err) => {
      resolve({ status: typeof error?.code === 'number' ? error.code : error === null ? 0 : 1, out, err })
    })
  })

let dir = ''
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'puzzled-verbs-'))
})
afterAll(() => rm(dir, { recursive: true }))
const file = async (name: string, text: string): Promise<string> => {
  await writeFile(join(dir, name), text)
  return join(dir, name)
}

describe('puzzlectl profile', () => {
  it('lists the ten profiles', async () => {
    const { status, out } = await call('profile', 'list', '--json')
    const names = JSON.parse(out).map(({ name }: { name: string }) => name)
    expect(names).toEqual(
      expect.arrayContaining([
        'audit',
        'build',
        'ci',
        'data',
        'offline',
        'ops',
        'read-only',
        'research',
        'standard',
        'strict',
      ]),
    )
    expect(status).toBe(0)
  })

  it('shows where each grant is said', async () => {
    const { out } = await call('profile', 'show', 'offline')
    expect(out).toMatch(/offline\.yaml:\d+:\d+\s+network none/)
    expect(out).toMatch(/standard\.yaml:\d+:\d+\s+seccomp standard/)
  })

  it('says which network rule decides about a request', async () => {
    const denied = await call('net', 'test', 'standard', 'GET', 'https://elsewhere.example/')
    expect([denied.status, denied.out]).toEqual([
      121,
      expect.stringContaining('deny by rule "no-rule" of profile standard'),
    ])
    const read = await call('net', 'test', '--json', 'standard', 'get', 'https://pypi.org/simple/')
    expect([read.status, JSON.parse(read.out)]).toMatchObject([0, { class: 'read', rule: 'packages' }])
  })

  it('refuses rules that can never match or contradict, and warns of a credential that goes nowhere', async () => {
    const head = 'format: puzzled/profile/v1\ndescription: For a test.\n'
    const rule = (id: string, what: string): string =>
      `    - { id: ${id}, hosts: [a.example.com], class: ${what}, methods: any, why: Only for this test. }\n`
    const network = 'network:\n  mode: gated\n  why: Only for this test.\n  rules:\n'
    const twice = await file(
      'twice.yaml',
      `${head}name: twice\n${network}${rule('a', 'read')}${rule('b', 'deny')}`,
    )
    const { status, out } = await call('profile', 'validate', twice)
    expect([status, out]).toEqual([65, expect.stringContaining('contradicts rule "a"')])
    const grant =
      '  credentials:\n    - { placeholder: PUZZLED-TOKEN, source: { kind: environment, name: T }, hosts: [b.example.com], header: authorization, why: Only for this test. }\n'
    const idle = await file('idle.yaml', `${head}name: idle\n${network}${rule('a', 'read')}${grant}`)
    const warned = await call('profile', 'validate', idle)
    expect([warned.status, warned.out]).toEqual([
      0,
      expect.stringMatching(/^warning: .*never used there\n.*ok/),
    ])
  })

  it('validates with every problem and its line', async () => {
    const bad = await file(
      'bad.yaml',
      'format: puzzled/profile/v1\nname: bad\ndescription: Not a good one.\nmaunts: []\nhome: { mode: public, why: for everybody }\n',
    )
    const { status, out } = await call('profile', 'validate', 'standard', bad)
    expect(status).toBe(65)
    expect(out).toMatch(/^standard: ok$/m)
    expect(out).toMatch(/bad\.yaml:4:1: unknown key "maunts", did you mean "mounts"\?/)
    expect(out).toMatch(/bad\.yaml:5:15: home\.mode: found "public", expected "private" or/)
  })

  it('says what another profile grants more', async () => {
    expect((await call('profile', 'diff', 'standard', 'strict')).out).toMatch(/grants nothing more/)
    expect((await call('profile', 'diff', 'strict', 'standard')).out).toMatch(/grants more:/)
  })

  it('begins a profile, and drafts one, that can be used at once', async () => {
    const begun = await file('mine.yaml', (await call('profile', 'init', 'mine')).out)
    const agents = await file('AGENTS.md', '- Never edit `vendor/`.\n')
    const drafted = await file('project.yaml', (await call('profile', 'from-agents-md', agents)).out)
    const { status, out } = await call('profile', 'validate', begun, drafted)
    expect([status, out.match(/: ok$/gm)?.length]).toEqual([0, 2])
  })
})

describe('puzzlectl policy', () => {
  it('lists what decides, with its version', async () => {
    const { out } = await call('policy', 'list', '--json')
    const listing = JSON.parse(out)
    expect(listing.policies[0]).toMatchObject({
      name: 'commit',
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    })
    expect(listing.vectors).toBeGreaterThanOrEqual(60)
  })

  it('judges a changeset that was written by hand, with its exit status', async () => {
    const evaluate = async (text: string) =>
      call('policy', 'eval', '--json', '--changeset', await file('cs.yaml', text))
    expect((await evaluate('changes: [{ path: src/a.ts, content: "x" }]')).status).toBe(0)
    const held = await evaluate('changes: [{ path: .git/hooks/pre-commit, content: "x" }]')
    expect([held.status, JSON.parse(held.out).hold[0].rule]).toEqual([120, 'vector/git-hook'])
    const denied = await evaluate('bases: [/etc]\nchanges: [{ path: sudoers.d/x, content: "x" }]')
    expect([denied.status, JSON.parse(denied.out).deny[0].rule]).toEqual([121, 'vector/sudoers'])
    const secret = await evaluate('changes: [{ path: a.txt, content: "-----BEGIN PRIVATE KEY-----" }]')
    expect(JSON.parse(secret.out).hold[0].rule).toBe('content/private-key')
    const bad = await evaluate('changes:\n  - { path: /abs }\n')
    expect([bad.status, bad.out + bad.err]).toEqual([2, expect.stringMatching(/cs\.yaml:2:\d+/)])
  })

  it('refuses a policy that does not work', async () => {
    const { status, err } = await call('policy', 'list', '--policy', await file('x.wasm', 'no wasm'))
    expect([status, err]).toEqual([65, expect.stringMatching(/x\.wasm: no WebAssembly/)])
  })

  it('explains rules and suggests the nearest', async () => {
    expect((await call('policy', 'explain', 'vector/git-hook')).out).toMatch(/^vector\/git-hook: hold/)
    expect((await call('policy', 'explain', 'setuit')).err).toMatch(/Did you mean "setuid"/)
  })

  it('says how to get the compiler when it is not there', async () => {
    const without = (): Promise<{ status: number; err: string }> =>
      new Promise((resolve) => {
        const env = { ...process.env, OPA: join(dir, 'no-opa') }
        execFile(process.execPath, [program, 'policy', 'build', 'x.rego'], { env }, (error, _out, err) =>
          resolve({ status: Number(error?.code ?? 0), err }),
        )
      })
    expect(await without()).toMatchObject({
      status: 69,
      err: expect.stringMatching(/not installed[\s\S]*hint: .*go install/),
    })
  })
})
