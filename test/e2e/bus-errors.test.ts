import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it as plain } from 'vitest'
import { typedError } from '../../ctl/bus-errors.ts'
import { FloodGate } from '../../daemon/api/flood.ts'
import { BusServer } from '../../daemon/api/server.ts'
import {
  BRANCH,
  BUS_NAME,
  type BusInterface,
  branchPath,
  MANAGER,
  MANAGER_PATH,
  signatureOf,
} from '../../daemon/contract/bus.ts'
import { toEntries } from '../../daemon/contract/bus-values.ts'
import { busNameOf, ERRORS, type ErrorCode } from '../../daemon/contract/errors.ts'
import { type BusConnection, BusError } from '../../daemon/lib/bus-connection.ts'
import { PuzzledError } from '../../daemon/lib/errors.ts'
import { policyModule } from '../fakes/policy-module.ts'
import { program } from '../tier/needs.ts'
import { onBus } from './grounds.ts'
import { CONFIG, emptied, onRamfs, ownEtc } from './own-etc.ts'
import { end, eventually, WHO } from './private-bus.ts'

const NFTABLES =
  ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/usr/lib64', '/usr/lib']
    .map((folder) => join(folder, 'libnftables.so.1'))
    .find((path) => existsSync(path)) ?? ''
const { here, it } = onBus(
  'each',
  program('curl'),
  NFTABLES === '' ? 'needs libnftables.so.1, to hide it' : undefined,
)
const { developer } = WHO

const repository = fileURLToPath(new URL('../..', import.meta.url))
const codes = Object.keys(ERRORS) as ErrorCode[]
const travelling = codes.filter((code) => ERRORS[code].bus !== null)
/** Errors that only a client can find have no name on the bus. */
type Travelling = { [Code in ErrorCode]: (typeof ERRORS)[Code]['bus'] extends null ? never : Code }[ErrorCode]

let root: BusConnection | undefined
afterEach(async () => {
  await root?.close()
  root = undefined
})

const refusal = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'no error',
    (error: unknown) => (error instanceof BusError ? error.busName : String(error)),
  )

/** The name of the error that a call of root's ends with, as it is on the wire. */
async function ask(path: string, face: BusInterface, member: string, ...body: unknown[]): Promise<string> {
  root ??= await here.connect()
  const signature = signatureOf(face.methods[member]?.in ?? [])
  const call = { destination: BUS_NAME, path, interface: face.name, member }
  return refusal(root.call(signature === '' ? call : { ...call, signature, body }))
}
const manager = (member: string, ...body: unknown[]) => ask(MANAGER_PATH, MANAGER, member, ...body)
const branch = (id: string, member: string, ...body: unknown[]) =>
  ask(branchPath(id), BRANCH, member, ...body)
const run = (request: Record<string, unknown>) =>
  manager('Run', toEntries({ bases: [here.project], cwd: here.project, command: ['true'], ...request }))

async function made(
  script: string,
  then: string,
): Promise<{ branch: string; commit: string; digest: string }> {
  const { out } = await here.puzzlectl(developer, 'run', '--json', '--then', then, '--', 'sh', '-c', script)
  return JSON.parse(out)
}
const held = async (script = 'echo a > a.txt'): Promise<string> => (await made(script, 'hold')).branch

async function created(): Promise<string> {
  root ??= await here.connect()
  const request = toEntries({ bases: [here.project], cwd: here.project, command: ['true'] })
  const call = { destination: BUS_NAME, path: MANAGER_PATH, interface: MANAGER.name, member: 'CreateBranch' }
  const [path] = await root.call({ ...call, signature: 'a{sv}', body: [request] })
  return String(path).split('/').at(-1) ?? ''
}

/** Another daemon on the same store, in which these places fail. */
async function again(failpoints: string, meanwhile: () => void = () => undefined): Promise<void> {
  await end(here.daemon, 'SIGTERM')
  meanwhile()
  await here.start(failpoints)
}

/** What a caller can do to be answered with each error; the name on the wire. */
const PROVOKED: Readonly<Record<Travelling, () => Promise<string>>> = {
  usage: () => run({ basses: [] }),
  'access-denied': async () => {
    const { out } = await here.puzzlectl(developer, 'gc', '--json')
    return busNameOf((JSON.parse(out) as { error: { code: ErrorCode } }).error.code)
  },
  'command-not-found': () => run({ command: ['/no/such/program'] }),
  'command-not-executable': () => run({ command: ['/etc/passwd'] }),
  'base-invalid': () => run({ bases: ['/'] }),
  'branch-unknown': () => manager('GetBranch', 'nobody'),
  'branch-ambiguous': async () => {
    // There are fewer letters than this: two begin with the same.
    const first = new Set<string>()
    for (;;) {
      const letter = (await created()).slice(0, 1)
      if (first.has(letter)) return manager('GetBranch', letter)
      first.add(letter)
    }
  },
  'wrong-state': async () => branch(await held(), 'Thaw'),
  'profile-invalid': () => run({ profile: 'nobody-wrote-it' }),
  'config-invalid': () => {
    writeFileSync(here.config, 'nonsense: true\n')
    return manager('Reload')
  },
  denied: async () =>
    branch(await held('mkdir .ssh; echo k > .ssh/authorized_keys'), 'Approve', '', [], [], ''),
  'changed-since-review': async () => branch(await held(), 'Approve', 'f'.repeat(64), [], [], ''),
  conflict: async () => {
    const { commit } = await made('echo a > a.txt', 'gate')
    writeFileSync(join(here.project, 'a.txt'), 'somebody else\n')
    return manager('Revert', commit)
  },
  'request-unknown': async () => branch(await held(), 'QueueBody', 'r00000000000', 10),
  'too-large': () => manager('GetBranch', 'x'.repeat(10 << 20)),
  'no-space': async () => {
    const { commit } = await made('echo a > a.txt', 'gate')
    await again('commit.before-intent=ENOSPC')
    return manager('Revert', commit)
  },
  stuck: async () => {
    const { commit } = await made('echo a > a.txt', 'gate')
    await again('commit.applied=EIO,undo.synced=EIO')
    return manager('Revert', commit)
  },
  'audit-failed': async () => {
    const id = await held()
    await again('audit.before-sync=EIO')
    return branch(id, 'Approve', '', [], [], '')
  },
  'record-damaged': async () => {
    const id = await held()
    const approvals = join(here.state, 'policy/approvals')
    const [file = ''] = readdirSync(approvals).filter((name) => name.startsWith(id))
    writeFileSync(join(approvals, file), '{"half": ')
    return branch(id, 'Approve', '', [], [], '')
  },
  'state-unreadable': async () => {
    await again('record.written=EIO')
    return manager('CreateBranch', toEntries({ bases: [here.project], cwd: here.project, command: ['true'] }))
  },
  'state-locked': async () => {
    const id = await held()
    const lock = here.background(WHO.root, ['flock', '--no-fork', '.', 'sleep', '600'])
    try {
      await eventually(async () => {
        if ((await here.exec(WHO.root, ['flock', '--nonblock', '.', 'true'])).status === 0)
          throw new Error('not yet')
      })
      return await branch(id, 'Approve', '', [], [], '')
    } finally {
      lock.child.kill('SIGKILL')
    }
  },
  'not-writable': async () => {
    const id = await held()
    // The requester comes to the project no more.
    chmodSync(dirname(here.project), 0o700)
    return branch(id, 'Approve', '', [], [], '')
  },
  'budget-exceeded': async () => {
    const started = await here.puzzlectl(
      developer,
      'run',
      '--detach',
      '--json',
      '--budget',
      'wall=1s',
      '--',
      'sleep',
      '600',
    )
    const { branch: id } = JSON.parse(started.out) as { branch: string }
    await eventually(async () => {
      const shown = await here.puzzlectl(developer, 'show', id, '--json')
      if ((JSON.parse(shown.out) as { state: string }).state !== 'frozen') throw new Error('not yet')
    })
    const answer = await branch(id, 'Thaw')
    await branch(id, 'Discard')
    return answer
  },
  // Before the daemon has loaded it, which it does for the first agent.
  'library-missing': () => meanwhile(emptied(realpathSync(NFTABLES)), () => run({})),
  'feature-missing': async () => {
    here.daemonEnv.PUZZLED_TEST_FEATURES = 'overlay:0'
    await again('')
    return run({})
  },
  'start-failed': async () => {
    // There it is, and the agent's user may not enter it.
    mkdirSync(join(here.project, 'closed'), { mode: 0o700 })
    const { out } = await here.puzzlectl(developer, 'run', '--json', '--cwd', 'closed', '--', 'true')
    return busNameOf((JSON.parse(out) as { error: { code: ErrorCode } }).error.code)
  },
  'state-unsuitable': () => meanwhile(onRamfs(join(here.state, 'branches')), () => run({})),
  'state-newer': async () => {
    const id = await held()
    const file = join(here.state, 'branches', id, 'branch.json')
    await again('', () =>
      writeFileSync(file, readFileSync(file, 'utf8').replace('"version": 1', '"version": 2')),
    )
    return branch(id, 'Show')
  },
  'kernel-refused': async () => {
    const { commit } = await made('echo a > a.txt', 'gate')
    await again('commit.applied=EIO')
    return manager('Revert', commit)
  },
  'approval-invalid': async () => {
    const id = await held()
    const approvals = join(here.state, 'policy/approvals')
    const file = join(approvals, readdirSync(approvals).find((name) => name.startsWith(id)) ?? '')
    const request = JSON.parse(readFileSync(file, 'utf8')) as object
    writeFileSync(file, JSON.stringify({ ...request, expiresAt: '2020-01-01T00:00:00.000Z' }))
    return branch(id, 'Approve', '', [], [], '')
  },
  'policy-invalid': () =>
    meanwhile(ownEtc(), () => {
      writeFileSync(join(CONFIG, 'policies/bad.wasm'), 'not a module')
      return manager('Reload')
    }),
  'policy-failed': async () => {
    const id = await held()
    return meanwhile(ownEtc(), async () => {
      const result = { version: 1, allow: true, deny: [], hold: [], warn: [], tier: 'approval_required' }
      const text = JSON.stringify([{ result: { ...result, obligations: ['quorum:nobody'] } }])
      const module = policyModule({ kind: 'answer', text }, ['house/decision'])
      writeFileSync(join(CONFIG, 'policies/odd.wasm'), module)
      expect(await manager('Reload')).toBe('no error')
      return branch(id, 'Review')
    })
  },
  'queue-full': async () => {
    const id = await held('curl -sS -m 60 -o /dev/null -d "{}" https://api.github.com/repos/a/b/issues')
    const { out } = await here.puzzlectl(developer, 'queue', 'ls', id, '--json')
    const [{ id: request }] = JSON.parse(out) as [{ id: string }]
    await again('', () => writeFileSync(here.config, 'queues: { per_user: 4k }\n', { flag: 'a' }))
    return branch(id, 'QueueEdit', request, toEntries({ body: Buffer.alloc(8192) }), '')
  },
  // What nobody foresaw: an error of no kind that is known.
  internal: async () => {
    const id = await held()
    await again('branch.staging=EODD')
    return branch(id, 'Approve', '', [], [], '')
  },
}

async function meanwhile(putBack: () => void, work: () => Promise<string>): Promise<string> {
  try {
    return await work()
  } finally {
    putBack()
  }
}

describe('every error of docs/errors.md that has a D-Bus name', () => {
  for (const [code, provoke] of Object.entries(PROVOKED))
    it(`${code}: the daemon answers with it`, async () =>
      expect(await provoke()).toBe(busNameOf(code as ErrorCode)))

  plain('is provoked here', () => expect(Object.keys(PROVOKED).sort()).toEqual([...travelling].sort()))

  plain('stands in that document, and no other does', () => {
    const rows = readFileSync(join(repository, 'docs/errors.md'), 'utf8').matchAll(
      /^\| `([a-z-]+)` \| (\d+) \| (?:`(\S+)`|–) \|/gm,
    )
    expect([...rows].map(([, code, exit, name]) => [code, Number(exit), name])).toEqual(
      codes.map((code) => [code, ERRORS[code].exit, travelling.includes(code) ? busNameOf(code) : undefined]),
    )
  })
})

it('whatever the engine refuses arrives as the same code, sentence and hint', async () => {
  const server = await here.connect()
  let thrown: Error = new Error('nothing')
  const object = {
    face: MANAGER,
    call: () => Promise.reject(thrown),
    properties: async () => ({}),
  }
  const tree = { find: async () => object, paths: async () => [] }
  const guard = { outside: async () => undefined, sees: async () => true, admit: async () => undefined }
  const reported: unknown[] = []
  const flood = new FloodGate(() => 0)
  new BusServer(
    server,
    tree,
    guard,
    async () => '',
    flood,
    (error) => reported.push(error),
  ).start()
  const client = await here.connect()
  try {
    const ask = (): Promise<string> =>
      client
        .call({
          destination: server.uniqueName,
          path: MANAGER_PATH,
          interface: MANAGER.name,
          member: 'ListBranches',
        })
        .then(
          () => 'no error',
          (error: unknown) => {
            if (!(error instanceof BusError)) throw error
            const { code, message, hint } = typedError(error)
            return `${error.busName} ${code}: ${message} (${hint})`
          },
        )
    for (const code of travelling) {
      thrown = new PuzzledError(code, `What ${code} says`, { hint: 'Do this' })
      expect(await ask()).toBe(`${busNameOf(code)} ${code}: What ${code} says (Do this)`)
    }
    expect(reported).toEqual([])
    // A defect is told as one, and so is what only a client can find.
    thrown = new TypeError('x is not a function')
    expect(await ask()).toBe('org.puzzled1.Error.Internal internal: x is not a function (undefined)')
    expect(reported).toEqual([thrown])
    thrown = new PuzzledError('not-root', 'Nobody is root')
    expect(await ask()).toMatch(/^org\.puzzled1\.Error\.Internal internal: Nobody/)
  } finally {
    await client.close()
    await server.close()
  }
})

it('the errors of the bus specification that docs/dbus.md names are those that are answered', async () => {
  const text = readFileSync(join(repository, 'docs/dbus.md'), 'utf8')
  const named = /org\.freedesktop\.DBus\.Error\.\{([\w,]+)\}/.exec(text)?.[1]?.split(',') ?? []
  root = await here.connect()
  const properties = {
    destination: BUS_NAME,
    path: MANAGER_PATH,
    interface: 'org.freedesktop.DBus.Properties',
  }
  const manager = { ...properties, interface: MANAGER.name }
  const get = (...body: unknown[]) => ({ ...properties, member: 'Get', signature: 'ss', body })
  const version = [MANAGER.name, 'Version', ['s', '0']]
  const answered = await Promise.all(
    [
      { ...manager, path: branchPath('nobody'), member: 'Show' },
      get('org.example.Other', 'Version'),
      { ...manager, member: 'Frobnicate' },
      get(MANAGER.name, 'Frobnicate'),
      { ...properties, member: 'Set', signature: 'ssv', body: version },
      { ...manager, member: 'GetBranch', signature: 'u', body: [1] },
    ].map((call) => refusal((root as BusConnection).call(call))),
  )
  expect(named).toHaveLength(6)
  expect(answered).toEqual(named.map((name) => `org.freedesktop.DBus.Error.${name}`))
})
