import { existsSync, mkdirSync, readFileSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { BRANCH, branchPath, MANAGER, MANAGER_PATH } from '../../daemon/contract/bus.ts'
import { toEntries } from '../../daemon/contract/bus-values.ts'
import { cgroupHierarchy } from '../../daemon/kernel/cgroup.ts'
import { type BusCall, type BusConnection, BusError } from '../../daemon/lib/bus-connection.ts'
import { program } from '../tier/needs.ts'
import { onBus } from './grounds.ts'
import { type PrivateBus, WHO } from './private-bus.ts'

const { here, it } = onBus('each', program('busctl'))
let root: BusConnection
beforeEach(async () => {
  if (here.connect !== undefined) root = await here.connect()
})
afterEach(() => root?.close())

const { developer, outsider } = WHO
const DESTINATION = 'org.puzzled1'
const PROPERTIES = 'org.freedesktop.DBus.Properties'
const manager = (member: string, rest: Partial<BusCall> = {}): BusCall => ({
  ...{ destination: DESTINATION, path: MANAGER_PATH, interface: MANAGER.name, member },
  ...rest,
})
/** The name of the error that a call ends with. */
const errorOf = (call: BusCall): Promise<string> =>
  root.call(call).then(
    () => 'no error',
    (error: unknown) =>
      error instanceof BusError ? error.busName.replace(/^.*\.Error\./, '') : String(error),
  )
const hold = async (): Promise<string> => {
  const { out } = await here.puzzlectl(
    developer,
    ...['run', '--json', '--then', 'hold', '--', 'sh', '-c', 'echo a > a'],
  )
  return (JSON.parse(out) as { branch: string }).branch
}
const alive = async (): Promise<boolean> => (await root.call(manager('ListBranches'))).length === 1

/** What gdbus or busctl would send for a method, with a value of the right type for every argument. */
const SAMPLE: Readonly<Record<string, string[]>> = {
  s: ['x'],
  as: ['0'],
  ay: ['1', '97'],
  u: ['0'],
  q: ['1'],
  t: ['1'],
  d: ['1'],
  'a{sv}': ['0'],
}
/** Where a value of the right type is still none that makes sense. */
const BY_NAME: Readonly<Record<string, string[]>> = { 's path': ['/nowhere'], 'u most': ['1'] }
/** Questions about something that is not there for who asks. */
const ANSWERS: Readonly<Record<string, RegExp>> = { GetBranch: /no branch/, Blame: /No commit on record/ }
const busctl = (here: PrivateBus, args: readonly string[]): string[] => [
  ...['busctl', `--address=${here.address}`, '--timeout=20', ...args],
]

describe('rights', () => {
  it('a user in no group is refused every method that does something', async () => {
    const id = await hold()
    for (const face of [MANAGER, BRANCH])
      for (const [name, method] of Object.entries(face.methods)) {
        const path = face === MANAGER ? MANAGER_PATH : branchPath(id)
        const args = method.in.flatMap(({ name, type }) => BY_NAME[`${type} ${name}`] ?? SAMPLE[type] ?? [])
        const signature = method.in.map(({ type }) => type).join('')
        const call = [
          'call',
          DESTINATION,
          path,
          face.name,
          name,
          ...(signature === '' ? [] : [signature, ...args]),
        ]
        const { status, err } = await here.exec(outsider, busctl(here, call))
        if (face === MANAGER && method.action === 'look' && ANSWERS[name] === undefined)
          expect([name, status]).toEqual([name, 0])
        else {
          expect([name, status]).toEqual([name, 1])
          const reason = face === BRANCH ? /no object/ : (ANSWERS[name] ?? /may not/)
          expect([name, err]).toEqual([name, expect.stringMatching(reason)])
        }
      }
    const record = join(here.state, 'branches', id, 'branch.json')
    expect(JSON.parse(readFileSync(record, 'utf8'))).toMatchObject({ state: 'held' })
    const audit = readFileSync(join(here.state, 'audit', '00000001.jsonl'), 'utf8')
    expect(audit).toContain('"what":"org.puzzled1.Manager.Run"')
  })

  it('a process in the cgroup of a branch gets no answer to anything, root or not', async () => {
    const place = join(cgroupHierarchy() ?? '', 'puzzle.slice', 'puzzle-abcdefghij.scope')
    const slice = existsSync(join(place, '..'))
    mkdirSync(place, { recursive: true })
    const calls = [
      ['call', DESTINATION, MANAGER_PATH, MANAGER.name, 'ListBranches'],
      ['call', DESTINATION, MANAGER_PATH, MANAGER.name, 'Doctor'],
      ['call', DESTINATION, MANAGER_PATH, 'org.freedesktop.DBus.Peer', 'Ping'],
      ['introspect', DESTINATION, MANAGER_PATH],
      ['get-property', DESTINATION, MANAGER_PATH, MANAGER.name, 'Version'],
    ]
    for (const call of calls) {
      const inside = ['sh', '-c', `echo $$ > ${place}/cgroup.procs; exec "$@"`, 'sh', ...busctl(here, call)]
      const refused = await here.exec(WHO.root, inside)
      expect([call.at(-1), refused.status]).toEqual([call.at(-1), 1])
      expect(refused.err).toMatch(/inside a branch/)
      // The positive control: the same call from outside.
      expect((await here.exec(WHO.root, busctl(here, call))).status).toBe(0)
    }
    rmdirSync(place)
    // Where there was one it is systemd's.
    if (!slice) rmdirSync(join(place, '..'))
  })

  it('a process in another PID namespace is refused as well', async () => {
    const call = ['dbus-send', `--bus=${here.address}`, '--print-reply', `--dest=${DESTINATION}`]
    call.push(MANAGER_PATH, `${MANAGER.name}.ListBranches`)
    expect((await here.exec(WHO.root, call)).status).toBe(0)
    const { status, err } = await here.exec(WHO.root, ['unshare', '--pid', '--fork', ...call])
    expect([status, err]).toEqual([1, expect.stringMatching(/inside a branch/)])
  })
})

const MISTAKES: readonly (readonly [what: string, call: BusCall, error: string])[] = [
  ['a wrong signature', manager('GetBranch', { signature: 'u', body: [1] }), 'InvalidArgs'],
  ['no arguments', manager('GetBranch'), 'InvalidArgs'],
  ['an unknown method', manager('Frobnicate'), 'UnknownMethod'],
  ['a method of Object.prototype', manager('toString'), 'UnknownMethod'],
  ['a method __proto__', manager('__proto__'), 'UnknownMethod'],
  ['an interface __proto__', manager('Get', { interface: '__proto__.x' }), 'UnknownMethod'],
  ['an unknown object', manager('Show', { path: '/org/puzzled1/branch/nothing' }), 'UnknownObject'],
  ['an unknown branch', manager('GetBranch', { signature: 's', body: ['nothing'] }), 'BranchUnknown'],
  ['a path as a name', manager('GetBranch', { signature: 's', body: ['../../etc'] }), 'BranchUnknown'],
  [
    'an unknown property',
    manager('Get', { interface: PROPERTIES, signature: 'ss', body: [MANAGER.name, 'constructor'] }),
    'UnknownProperty',
  ],
  [
    'a write to a property',
    manager('Set', {
      interface: PROPERTIES,
      signature: 'ssv',
      body: [MANAGER.name, 'Version', ['s', 'x']],
    }),
    'PropertyReadOnly',
  ],
  ['a property call without arguments', manager('GetAll', { interface: PROPERTIES }), 'InvalidArgs'],
  ['an empty request', manager('Run', { signature: 'a{sv}', body: [[]] }), 'Usage'],
  [
    'an unknown key',
    manager('Run', { signature: 'a{sv}', body: [toEntries({ bases: ['/'], limits: {} })] }),
    'Usage',
  ],
  [
    'a key __proto__',
    manager('Run', { signature: 'a{sv}', body: [[['__proto__', ['a{sv}', []]]]] }),
    'Usage',
  ],
  [
    'a descriptor that the caller does not have',
    manager('Run', {
      signature: 'a{sv}',
      body: [
        toEntries({
          bases: ['/usr'],
          cwd: '/usr',
          command: ['true'],
          stdio: { kind: 'inherit', fds: [999, 999, 999] },
        }),
      ],
    }),
    'Usage',
  ],
  [
    'ten megabytes of text',
    manager('GetBranch', { signature: 's', body: ['x'.repeat(10 << 20)] }),
    'TooLarge',
  ],
  [
    'ten megabytes of command',
    manager('Run', {
      signature: 'a{sv}',
      body: [toEntries({ bases: ['/usr'], cwd: '/usr', command: ['x'.repeat(10 << 20)] })],
    }),
    'TooLarge',
  ],
]

describe('bad input', () => {
  it.each(MISTAKES)('%s is a typed error', async (_what, call, expected) => {
    expect(await errorOf(call)).toBe(expected)
    expect(await alive()).toBe(true)
    expect(here.said()).toBe('')
  })

  it('a property that was written to is unchanged', async () => {
    const version = async () =>
      root.call(manager('Get', { interface: PROPERTIES, signature: 'ss', body: [MANAGER.name, 'Version'] }))
    const before = await version()
    await errorOf(
      manager('Set', {
        interface: PROPERTIES,
        signature: 'ssv',
        body: [MANAGER.name, 'Version', ['s', 'x']],
      }),
    )
    expect(await version()).toEqual(before)
  })

  it('a flood is answered with an error, and others do not notice', async () => {
    const other = await here.connect()
    const flood = Array.from({ length: 2000 }, () => errorOf(manager('ListBranches')))
    const [mine] = await other.call(manager('ListBranches'))
    const answers = await Promise.all(flood)
    await other.close()
    expect(mine).toEqual([])
    expect(answers.filter((answer) => answer === 'TooLarge').length).toBeGreaterThan(1000)
    expect(answers.filter((answer) => answer === 'no error').length).toBeGreaterThan(0)
    expect(new Set(answers)).toEqual(new Set(['TooLarge', 'no error']))
  })
})

describe('introspection', () => {
  const introspect = async (path: string): Promise<string> => {
    const face = 'org.freedesktop.DBus.Introspectable'
    const [xml] = await root.call(manager('Introspect', { path, interface: face }))
    return String(xml)
      .replace(/^<!DOCTYPE[^>]*>\n/, '')
      .replace(/ {2}<node name="[^"]*"\/>\n/g, '')
  }
  const documented = (name: string): string =>
    readFileSync(new URL(`../../docs/dbus/${name}.xml`, import.meta.url), 'utf8')

  it('is what the reference says, and busctl understands it', async () => {
    const id = await hold()
    expect(await introspect(MANAGER_PATH)).toBe(documented(MANAGER.name))
    expect(await introspect(branchPath(id))).toBe(documented(BRANCH.name))
    const { out } = await here.exec(developer, busctl(here, ['introspect', DESTINATION, branchPath(id)]))
    for (const name of [...Object.keys(BRANCH.methods), ...Object.keys(BRANCH.properties)])
      expect(out).toMatch(new RegExp(`^\\.${name} +(method|property) `, 'm'))
    const tree = await here.exec(developer, busctl(here, ['tree', '--list', DESTINATION]))
    expect(tree.out).toContain(branchPath(id))
    const foreign = await here.exec(WHO.colleague, busctl(here, ['tree', '--list', DESTINATION]))
    expect(foreign.out).not.toContain(id)
  })
})
