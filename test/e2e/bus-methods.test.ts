import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { parse, stringify } from 'yaml'
import { BRANCH, branchPath, MANAGER, MANAGER_PATH } from '../../daemon/contract/bus.ts'
import { packageRoot } from '../../daemon/lib/assets.ts'
import { needs, program, root } from '../tier/needs.ts'
import { eventually, type PrivateBus, privateBus, WHO } from './private-bus.ts'
import { pythonDbus } from './python-client.ts'

const check = needs(root, program('dbus-daemon'), pythonDbus)
const { developer, outsider } = WHO
let here: PrivateBus
/** A branch of the developer, held. */
let branch = ''
beforeAll(async () => {
  if (root !== undefined) return
  here = await privateBus()
  const { out } = await here.puzzlectl(
    developer,
    ...['run', '--json', '--then', 'hold', '--', 'sh', '-c', 'echo a > a'],
  )
  branch = (JSON.parse(out) as { branch: string }).branch
})
afterAll(async () => here?.close())

/** Calls of one program over one connection: a line of JSON in, a line of JSON out. */
const CLIENT = `
import dbus, dbus.bus, json, socket, sys
calls = json.load(open(sys.argv[2]))
answers = []
try:
    bus = dbus.bus.BusConnection(sys.argv[1])
except Exception as error:
    print(json.dumps([['no bus', str(error)]]))
    sys.exit(0)
for path, face, member, signature, args in calls:
    try:
        answer = bus.call_blocking('org.puzzled1', path, face, member, signature, args, timeout=60)
        answers.append(['ok', '' if answer is None else str(answer)])
    except dbus.exceptions.DBusException as error:
        answers.append([error.get_dbus_name().split('.')[-1], error.get_dbus_message()])
print(json.dumps(answers))
`

interface Method {
  path: string
  face: string
  member: string
  signature: string
}
const SAMPLE: Readonly<Record<string, unknown>> = {
  ...{ s: 'x', as: [], ay: [97], u: 0, q: 1, t: 1, d: 1.5, v: 'x', 'a{sv}': {} },
}
const keyOf = ({ path, face, member }: Method): string =>
  `${path === MANAGER_PATH ? 'manager' : 'branch'} ${face.replace('org.freedesktop.DBus.', '')}.${member}`

/** As the running daemon introspects itself: a method that nobody thought of is found. */
async function methods(): Promise<Method[]> {
  const connection = await here.connect()
  const found: Method[] = []
  for (const path of [MANAGER_PATH, branchPath(branch)]) {
    const face = 'org.freedesktop.DBus.Introspectable'
    const target = { destination: 'org.puzzled1', path, interface: face, member: 'Introspect' }
    const [xml] = await connection.call(target)
    for (const [, name = '', inner = ''] of String(xml).matchAll(
      /<interface name="([^"]+)">(.*?)<\/interface>/gs,
    ))
      for (const [, member = '', args = ''] of inner.matchAll(
        /<method name="(\w+)"(?:\/>|>(.*?)<\/method>)/gs,
      )) {
        const types = [...args.matchAll(/type="([^"]+)" direction="in"/g)].map(([, type]) => type)
        found.push({ path, face: name, member, signature: types.join('') })
      }
  }
  await connection.close()
  return found
}

/** One value for each complete type of a signature. */
const argumentsFor = ({ face, member, signature }: Method): unknown[] => {
  const own = face.startsWith('org.puzzled1') ? face : MANAGER.name
  if (member === 'GetAll') return [own]
  if (member === 'Get' || member === 'Set') return [own, 'Version', ...(member === 'Set' ? ['x'] : [])]
  return [...signature.matchAll(/a\{sv\}|a.|./g)].map(([type]) => SAMPLE[type])
}
const asCalls = (all: readonly Method[]): unknown[] =>
  all.map((one) => [one.path, one.face, one.member, one.signature, argumentsFor(one)])

type Answers = [name: string, message: string][]
const put = (name: string, content: string): string => {
  const file = join(here.project, name)
  writeFileSync(file, content, { mode: 0o644 })
  return file
}
const refusals = (): { uid: number | null; what: string; why: string }[] =>
  readdirSync(join(here.state, 'audit'))
    .filter((name) => name.endsWith('.jsonl'))
    .flatMap((name) =>
      readFileSync(join(here.state, 'audit', name), 'utf8')
        .trim()
        .split('\n'),
    )
    .map((line) => JSON.parse(line.slice(line.indexOf('{'))) as { kind: string; facts: never })
    .flatMap(({ kind, facts }) => (kind === 'denied' ? [facts] : []))

const [OK, NONE, MANAGE, ADMINISTER] = ['ok', 'UnknownObject', 'manage', 'administer']
/** What somebody in no group is told. `manage` and `administer`: access denied, for want of that right. */
const OUTSIDER: Readonly<Record<string, string>> = {
  'manager Properties.Get': OK,
  'manager Properties.GetAll': OK,
  'manager Properties.Set': 'PropertyReadOnly',
  'manager Introspectable.Introspect': OK,
  'manager Peer.Ping': OK,
  'manager Peer.GetMachineId': OK,
  'manager ObjectManager.GetManagedObjects': OK,
  'manager org.puzzled1.Manager.CreateBranch': MANAGE,
  'manager org.puzzled1.Manager.Run': MANAGE,
  'manager org.puzzled1.Manager.ListBranches': OK,
  'manager org.puzzled1.Manager.GetBranch': 'BranchUnknown',
  'manager org.puzzled1.Manager.Revert': MANAGE,
  'manager org.puzzled1.Manager.Events': OK,
  'manager org.puzzled1.Manager.Doctor': OK,
  'manager org.puzzled1.Manager.Probe': ADMINISTER,
  'manager org.puzzled1.Manager.Blame': 'Usage',
  'manager org.puzzled1.Manager.Collect': ADMINISTER,
  'manager org.puzzled1.Manager.Reload': ADMINISTER,
  // These two are about no object.
  'branch Peer.Ping': OK,
  'branch Peer.GetMachineId': OK,
  ...Object.fromEntries(
    ['Properties.Get', 'Properties.GetAll', 'Properties.Set', 'Introspectable.Introspect'].map((name) => [
      `branch ${name}`,
      NONE,
    ]),
  ),
  ...Object.fromEntries(
    [
      ...['Finish', 'Show', 'Changes', 'ChangesPage', 'Select', 'Content', 'Review', 'Rebase', 'Commit'],
      ...[
        'Approve',
        'Pick',
        'Reject',
        'Discard',
        'Signal',
        'Freeze',
        'Usage',
        'Denials',
        'Queue',
        'QueueAct',
      ],
      ...['QueueBody', 'QueueEdit', 'NetTest', 'Extend', 'Thaw', 'Exec', 'Attach', 'Output', 'Resize'],
    ].map((name) => [`branch ${BRANCH.name}.${name}`, NONE]),
  ),
}

describe('somebody in no group', () => {
  check('gets from every method what its row says, and no word about any branch', async () => {
    const all = await methods()
    expect(all.map(keyOf).sort()).toEqual(Object.keys(OUTSIDER).sort())
    const calls = put('calls.json', JSON.stringify(asCalls(all)))
    const words = ['/usr/bin/python3', '-c', CLIENT, here.address, calls]
    const { out, err } = await here.exec(outsider, words)
    expect(err).toBe('')
    const answers = JSON.parse(out) as Answers
    const got = answers.map(([name, message]) =>
      name === 'AccessDenied' ? (/may not (\w+)/.exec(message)?.[1] ?? message) : name,
    )
    expect(all.map((one, at) => [keyOf(one), got[at]])).toEqual(
      all.map((one) => [keyOf(one), OUTSIDER[keyOf(one)]]),
    )
    for (const [, message] of answers.filter(([name]) => name === OK)) expect(message).not.toContain(branch)
    const denied = refusals()
    for (const [key, answer] of Object.entries(OUTSIDER)) {
      if (answer !== MANAGE && answer !== ADMINISTER) continue
      const what = key.replace('manager ', '')
      expect(denied).toContainEqual({ uid: outsider.uid, what, why: `uid ${outsider.uid} may not ${answer}` })
    }
    // The positive control: root is refused nothing for want of a right.
    const looks = all.filter(({ member }) => /^(Ping|Introspect|Show|Changes|Denials|Reload)$/.test(member))
    const allowed = await here.exec(WHO.root, [
      ...['/usr/bin/python3', '-c', CLIENT, here.address],
      put('looks.json', JSON.stringify(asCalls(looks))),
    ])
    expect((JSON.parse(allowed.out) as Answers).map(([name]) => name)).toEqual(looks.map(() => OK))
  })
})

const socketOf = (name: string): string => join(dirname(here.config), 'run', name)

/** The sockets of the control plane are handed in: what is refused then is refused by the daemon. */
function profileWithSockets(): string {
  mkdirSync(socketOf('sessions'), { recursive: true, mode: 0o711 })
  const standard = parse(readFileSync(join(packageRoot(), 'policies/profiles/standard.yaml'), 'utf8'))
  const paths = [here.address.replace('unix:path=', ''), socketOf('metrics.sock'), socketOf('sessions')]
  const mounts = paths.map((path) => ({ path, mode: 'ro', why: 'An administrator who did not think.' }))
  const profile = {
    ...standard,
    name: 'sockets',
    mounts: [...standard.mounts, ...mounts],
    network: { mode: 'none', why: 'Nothing of it is asked for.' },
  }
  return put('sockets.yaml', stringify(profile))
}
/** For root, whom nothing but being inside of a branch keeps from anything. */
const inside = (...command: string[]) =>
  here.puzzlectl(
    WHO.root,
    ...['run', '--profile', join(here.project, 'sockets.yaml'), '--then', 'discard', '--', ...command],
  )

const ABSTRACT = '@puzzled-abstract'
const LISTENER = `
import socket
end = socket.socket(socket.AF_UNIX)
end.bind('\\0puzzled-abstract')
end.listen()
while True:
    end.accept()[0].sendall(b'x')
`
const SOCKETS = `
import json, socket, sys
answers = {}
for place in sys.argv[1:]:
    end = socket.socket(socket.AF_UNIX)
    end.settimeout(20)
    try:
        end.connect('\\0' + place[1:] if place[0] == '@' else place)
        end.sendall(b'GET /metrics HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n' if place.endswith('metrics.sock') else b'h\\0\\0\\0\\0')
        answers[place] = 'said something' if end.recv(4096) else 'hung up'
    except OSError as error:
        answers[place] = 'hung up' if isinstance(error, (ConnectionResetError, BrokenPipeError)) else type(error).__name__
    end.close()
print(json.dumps(answers))
`

describe('a process inside a branch', () => {
  check('is refused every method over a bus that it was handed, and each refusal is on record', async () => {
    profileWithSockets()
    const all = await methods()
    put('client.py', CLIENT)
    put('calls.json', JSON.stringify(asCalls(all)))
    const command = ['/usr/bin/python3', 'client.py', here.address, 'calls.json']
    const { out, err } = await inside(...command)
    expect([out.slice(0, 1), err]).toEqual(['[', expect.stringContaining('no changes')])
    expect(JSON.parse(out)).toEqual(
      all.map(() => ['AccessDenied', 'A process inside a branch cannot use the daemon']),
    )
    const denied = refusals()
    for (const { face, member } of all)
      expect(denied).toContainEqual({
        uid: expect.any(Number),
        what: `${face}.${member}`,
        why: 'A process inside a branch cannot use the daemon',
      })
    expect(
      JSON.parse(readFileSync(join(here.state, 'branches', branch, 'branch.json'), 'utf8')),
    ).toMatchObject({ state: 'held' })
  })

  check(
    'is cut off by the sockets of sessions and of the metrics, also by those of its own uid',
    async () => {
      profileWithSockets()
      const detached = await here.puzzlectl(
        WHO.root,
        ...[
          'run',
          '--detach',
          '--tty',
          '--then',
          'discard',
          '--',
          'sh',
          '-c',
          'while :; do echo x; sleep 1; done',
        ],
      )
      const id = detached.out.trim()
      const places = [socketOf('metrics.sock'), socketOf(`sessions/${id}`)]
      // Agents of people have the uid of these, and root's have one of their own: then it is the rights that keep them out.
      for (const place of places) chmodSync(place, 0o666)
      put('sockets.py', SOCKETS)
      const abstract = here.background(WHO.root, ['/usr/bin/python3', '-c', LISTENER])
      // The positive control: from outside all of them answer.
      const outside = ['/usr/bin/python3', join(here.project, 'sockets.py'), ...places, ABSTRACT]
      await eventually(async () => {
        const answers = JSON.parse((await here.exec(WHO.root, outside)).out) as Record<string, string>
        if (Object.values(answers).some((answer) => answer !== 'said something'))
          throw new Error(`Not yet: ${JSON.stringify(answers)}`)
      })
      const { out } = await inside('/usr/bin/python3', 'sockets.py', ...places, ABSTRACT)
      expect(JSON.parse(out)).toEqual({
        [places[0] ?? '']: 'hung up',
        [places[1] ?? '']: 'hung up',
        // Nobody listens there in the network namespace of the branch.
        [ABSTRACT]: 'ConnectionRefusedError',
      })
      for (const what of ['the socket of the metrics', 'the socket of a session'])
        expect(refusals()).toContainEqual({
          ...{ uid: expect.any(Number), what },
          why: 'A process inside a branch cannot use the daemon',
        })
      abstract.child.kill()
      await abstract.ended
      expect((await here.puzzlectl(WHO.root, 'discard', id)).status).toBe(0)
    },
  )

  check('gets nowhere with a copy of puzzlectl', async () => {
    profileWithSockets()
    const copy = join(here.project, 'copy')
    mkdirSync(copy)
    const dist = join(packageRoot(), 'dist')
    cpSync(dist, join(copy, 'dist'), { recursive: true })
    cpSync(process.execPath, join(copy, 'node'))
    for (const name of ['package.json', 'policies'])
      cpSync(join(packageRoot(), name), join(copy, name), { recursive: true })
    const puzzlectl = (...words: string[]) =>
      inside(
        'env',
        `DBUS_SYSTEM_BUS_ADDRESS=${here.address}`,
        'copy/node',
        'copy/dist/puzzlectl.js',
        ...words,
      )
    for (const words of [['ls'], ['show', branch], ['approve', branch], ['discard', branch]]) {
      const { status, err } = await puzzlectl(...words)
      expect([words, status, err]).toEqual([words, 77, expect.stringContaining('inside a branch')])
    }
    // The same copy from outside.
    const words = ['copy/node', 'copy/dist/puzzlectl.js', 'ls', '--json']
    expect((await here.exec(WHO.root, words)).out).toContain(branch)
    expect(spawnSync('test', ['-e', join(here.state, 'branches', branch)]).status).toBe(0)
  })
})
