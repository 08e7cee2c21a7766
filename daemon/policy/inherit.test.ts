import { describe, expect, it } from 'vitest'
import { narrow, resolveRoot } from './inherit.ts'
import { parseProfile } from './profile.ts'

const PARENT = `format: puzzled/profile/v1
name: parent
description: What the others narrow.
enforce: enforce
mounts:
  - { path: /usr, mode: ro, why: for the tools }
  - { path: /srv/data, mode: rw-overlay, why: for the data }
  - { path: /usr/secret, mode: hidden, why: not for agents }
home: { mode: private, why: an empty home }
environment: { pass: [{ names: [LANG, LC_*], why: for the language }] }
exec:
  allow: [{ path: /usr/bin, why: for the tools }]
  deny: [{ path: /usr/bin/su, why: not for agents }]
seccomp: { program: standard, why: for the tools }
network:
  mode: gated
  why: for the packages
  rules:
    - { id: npm, hosts: ["*.example.org", npm.example.com], methods: [GET], paths: [/pkg/**], class: read, budget: { requests: 10 }, why: for the packages }
    - { id: no-admin, hosts: admin.example.org, class: deny, methods: any, why: not for agents }
  ports: [{ port: 8080, why: a mirror }]
budgets: { memory: 1GiB, pids: 100 }
gate:
  onAgentFailure: hold
  maxFiles: 100
  policies: [house]
  denyPaths: [{ path: /srv/data/keys/**, why: not for agents }]
resources: { cpus: 2, ioWeight: 50 }
`
const CLOCKS = 'namespaces: { time: true, why: not for agents }'
const parent = resolveRoot(parseProfile(PARENT, 'parent.yaml'))
const child = (text: string) =>
  narrow(
    parent,
    parseProfile(
      `format: puzzled/profile/v1\nname: child\ndescription: Narrows the parent.\nextends: parent\n${text}`,
      'child.yaml',
    ),
  )

const narrower: readonly [what: string, text: string][] = [
  ['a mount made read-only', 'mounts: [{ path: /srv/data, mode: ro, why: only to read }]'],
  ['a part of a mount hidden', 'mounts: [{ path: /usr/share, mode: hidden, why: not needed here }]'],
  ['a hidden home', 'home: { mode: hidden, why: not needed here }'],
  ['fewer variables', 'environment: { pass: [{ names: LC_ALL, why: only this one }] }'],
  ['one program', 'exec: { allow: [{ path: /usr/bin/git, why: only git here }] }'],
  ['a stricter program', 'seccomp: { program: strict, why: no compilers here }'],
  ['no network', 'network: { mode: none }'],
  [
    'a narrower rule',
    'network: { rules: [{ id: one, hosts: a.example.org, ports: 443, methods: GET, paths: /pkg/x, class: read, budget: { requests: 5 }, why: only this one }, { id: no-admin, hosts: admin.example.org, class: deny, methods: any, why: not for agents }] }',
  ],
  ['lower limits', 'budgets: { memory: 512MiB }\ngate: { maxFiles: 10 }'],
  ['fewer processors and a rate', 'resources: { cpus: 0.5, ioRead: 1MB }'],
  ['clocks of its own', CLOCKS],
  ['more refusals', 'gate: { denyPaths: [{ path: /srv/**, why: nothing there }], policies: [second] }'],
]

const wider: readonly [what: string, text: string, childLine: number, parentLine: number][] = [
  ['shadow', 'enforce: shadow', 5, 4],
  ['a mount made writable', 'mounts: [{ path: /usr, mode: rw-overlay, why: to change it }]', 5, 6],
  [
    'a part of a mount made writable',
    'mounts: [{ path: /usr/lib, mode: rw-overlay, why: to change it }]',
    5,
    6,
  ],
  ['a new mount', 'mounts: [{ path: /home, mode: ro, why: to see it all }]', 5, 5],
  ['a hidden mount shown', 'mounts: [{ path: /usr/secret/a, mode: ro, why: to see it all }]', 5, 8],
  ['a home overlay', 'home: { mode: overlay, why: to see it all }', 5, 9],
  ['another variable', 'environment: { pass: [{ names: AWS_*, why: to see it all }] }', 5, 10],
  ['a wider variable', 'environment: { pass: [{ names: L*, why: to see it all }] }', 5, 10],
  ['any program', 'exec: { allow: { any: true, why: to run it all } }', 5, 12],
  ['another program', 'exec: { allow: [{ path: /opt, why: to run it all }] }', 5, 12],
  ['a neighbour by prefix', 'exec: { allow: [{ path: /usr/bin2, why: to run it all }] }', 5, 12],
  ['a wider system call list', 'seccomp: { program: build, why: to run it all }', 5, 14],
  ['open reads', 'network: { mode: open-read, why: to see it all }', 5, 16],
  [
    'another host',
    'network: { rules: [{ id: x, hosts: evil.example.net, class: read, why: to see it all }] }',
    5,
    18,
  ],
  [
    'a class of more rights',
    'network: { rules: [{ id: x, hosts: a.example.org, methods: GET, paths: /pkg/x, budget: { requests: 1 }, class: live, why: to do it all }] }',
    5,
    18,
  ],
  [
    'a method more',
    'network: { rules: [{ id: x, hosts: a.example.org, methods: [GET, POST], paths: /pkg/x, budget: { requests: 1 }, class: read, why: to do it all }] }',
    5,
    18,
  ],
  [
    'a rule without its budget',
    'network: { rules: [{ id: x, hosts: a.example.org, methods: GET, paths: /pkg/x, class: read, why: to do it all }] }',
    5,
    18,
  ],
  ['a port more', 'network: { ports: [{ port: 22, why: to reach it all }] }', 5, 21],
  [
    'a host behind a door',
    'network: { expose: [{ host: db.example.org, port: 5432, why: to reach it all }] }',
    5,
    15,
  ],
  ['a higher limit', 'budgets: { memory: 2GiB }', 5, 22],
  ['more processors', 'resources: { cpus: 3 }', 5, 28],
  ['a larger share', 'resources: { ioWeight: 51 }', 5, 28],
  ['a higher gate limit', 'gate: { maxFiles: 101 }', 5, 25],
  ['a softer failure', 'gate: { onAgentFailure: gate }', 5, 24],
  ['setuid', 'gate: { allowSetuid: { value: true, why: to do it all } }', 5, 23],
]

describe('inherit', () => {
  it('inherits everything that is not written', () => {
    expect({ ...child('').profile, name: 'parent', description: parent.profile.description }).toEqual(
      parent.profile,
    )
  })

  it.each(narrower)('accepts %s', (_what, text) => {
    expect(() => child(text)).not.toThrow()
  })

  it.each(wider)('refuses %s and names both lines', (_what, text, childLine, parentLine) => {
    expect(() => child(text)).toThrow(
      new RegExp(
        `widens what it extends: child\\.yaml:${childLine}:\\d+: .*"parent" \\(parent\\.yaml:${parentLine}:\\d+\\)`,
      ),
    )
  })

  it('refuses the clocks of the host where the parent has its own', () => {
    const outer = resolveRoot(parseProfile(`${PARENT}${CLOCKS}\n`, 'parent.yaml'))
    const text = PARENT.split('\n').slice(1, 3).join('\n').replaceAll('parent', 'child')
    const own = `format: puzzled/profile/v1\n${text}\nextends: parent\n`
    expect(narrow(outer, parseProfile(own, 'child.yaml')).profile.namespaces.time).toBe(true)
    const wide = `${own}${CLOCKS.replace('true', 'false')}\n`
    expect(() => narrow(outer, parseProfile(wide, 'child.yaml'))).toThrow(/namespaces: found false/)
  })

  it('drops no refusal of the parent', () => {
    const { profile } = child('exec: { deny: [] }\ngate: { denyPaths: [], policies: [] }')
    expect(profile.exec.deny).toEqual(parent.profile.exec.deny)
    expect(profile.gate.denyPaths).toEqual(parent.profile.gate.denyPaths)
    expect(profile.gate.policies).toEqual(['house'])
    expect(child('network: { rules: [] }').profile.network.rules.map(({ id }) => id)).toEqual(['no-admin'])
    expect(() =>
      child('network: { rules: [{ id: no-admin, hosts: x.example.org, class: deny, why: another host }] }'),
    ).toThrow(/without the refusal "no-admin"/)
  })

  it('knows where every grant comes from', () => {
    const { origins } = child('budgets: { memory: 512MiB }')
    expect(origins.get('budgets.memory')).toMatchObject({ file: 'child.yaml', line: 5 })
    expect(origins.get('mounts:/usr')).toMatchObject({ file: 'parent.yaml', line: 6 })
  })
})
