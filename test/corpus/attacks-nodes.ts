import { add, type Case, ELF, link, modify, program, remove } from './case.ts'

const request = (method: string) => ({
  id: 'r1',
  method,
  host: 'api.example.org',
  path: '/issues',
  bytes: 10,
  class: 'queue',
  sha256: '',
})
/** Modes, owners, types and links. */
export const NODES: readonly Case[] = [
  { name: 'setuid', changes: [{ path: 'bin/su', mode: 0o4755 }], verdict: 'deny', rules: ['setuid'] },
  { name: 'setgid', changes: [{ path: 'bin/x', mode: 0o2755 }], verdict: 'deny', rules: ['setuid'] },
  {
    name: 'setuid by chmod',
    changes: [{ kind: 'metadata', path: 'bin/x', oldMode: 0o755, mode: 0o4755 }],
    verdict: 'deny',
    rules: ['setuid'],
  },
  {
    name: 'setuid where the profile allows it',
    changes: [{ path: 'bin/su', mode: 0o4755 }],
    verdict: 'hold',
    rules: ['setuid'],
    gate: { allowSetuid: true },
  },
  {
    name: 'file capabilities',
    changes: [{ path: 'bin/x', xattrs: [{ name: 'security.capability', value: Buffer.from('01') }] }],
    verdict: 'deny',
    rules: ['capabilities'],
  },
  {
    name: 'forged overlay attributes',
    changes: [{ path: 'a', xattrs: [{ name: 'trusted.overlay.opaque', value: Buffer.from('y') }] }],
    verdict: 'deny',
    rules: ['capabilities'],
  },
  {
    name: 'a device',
    changes: [{ path: 'dev/sda', findings: [{ rule: 'device', message: 'block device 8:0' }] }],
    verdict: 'deny',
    rules: ['changeset/device'],
  },
  {
    name: 'a fifo',
    changes: [{ path: 'pipe', findings: [{ rule: 'fifo', message: 'a fifo' }] }],
    verdict: 'deny',
    rules: ['changeset/fifo'],
  },
  { name: 'another owner', changes: [{ path: 'a', uid: 0 }], verdict: 'hold', rules: ['owner'] },
  {
    name: 'another group',
    changes: [{ kind: 'metadata', path: 'a', gid: 27 }],
    verdict: 'hold',
    rules: ['owner'],
  },
  {
    name: 'world writable',
    changes: [{ path: 'shared', mode: 0o666 }],
    verdict: 'hold',
    rules: ['world-writable'],
  },
  {
    name: 'machine code',
    changes: [{ path: 'tools/helper', mode: 0o755, content: ELF }],
    verdict: 'hold',
    rules: ['native-executable'],
  },
  {
    name: 'machine code without the bit',
    changes: [add('assets/logo.png', ELF)],
    verdict: 'hold',
    rules: ['native-executable'],
  },
  {
    name: 'a link to shadow',
    changes: [link('docs/a', '/etc/shadow')],
    verdict: 'hold',
    rules: ['symlink-outside'],
  },
  {
    name: 'a link to the keys of the user',
    changes: [link('docs', '../.ssh')],
    verdict: 'hold',
    rules: ['symlink-outside'],
  },
  {
    name: 'a link that winds out',
    changes: [link('a', 'src/../../../etc')],
    verdict: 'hold',
    rules: ['symlink-outside'],
  },
  {
    name: 'a link to proc',
    changes: [link('a', '/proc/self/root/etc')],
    verdict: 'hold',
    rules: ['symlink-outside'],
  },
  {
    name: 'startup file by link',
    changes: [link('.bashrc', 'scripts/x.sh'), program('scripts/x.sh')],
    verdict: 'hold',
    rules: ['vector/bash-startup'],
  },
]

/** Sheer numbers, and what the profile or the agent's end says. */
export const SIZE: readonly Case[] = [
  {
    name: 'mass deletion',
    changes: Array.from({ length: 1001 }, (_, n) => remove(`src/${n}`)),
    verdict: 'hold',
    rules: ['mass-deletion'],
  },
  {
    name: 'many files',
    changes: Array.from({ length: 11 }, (_, n) => add(`src/${n}`)),
    verdict: 'hold',
    rules: ['many-files'],
    gate: { maxFiles: 10 },
  },
  {
    name: 'many bytes',
    changes: [{ path: 'a', size: 2000 }],
    verdict: 'hold',
    rules: ['many-bytes'],
    gate: { maxBytes: 1000 },
  },
  {
    name: 'one bad file among ten thousand',
    changes: [
      ...Array.from({ length: 9999 }, (_, n) => modify(`src/${n % 100}/${n}.ts`)),
      program('.git/hooks/pre-push'),
    ],
    verdict: 'hold',
    rules: ['vector/git-hook'],
    gate: { maxFiles: 20_000 },
  },
  {
    name: 'noise does not hide a denial',
    changes: [...Array.from({ length: 300 }, (_, n) => program(`s/${n}`)), { path: 'x', mode: 0o4755 }],
    verdict: 'deny',
    rules: ['setuid', 'executable'],
  },
  {
    name: 'the agent failed',
    changes: [add('a')],
    verdict: 'hold',
    rules: ['agent-failed'],
    exit: { code: 1, cause: 'exited' },
  },
  {
    name: 'the agent was killed for memory',
    changes: [add('a')],
    verdict: 'hold',
    rules: ['agent-failed'],
    exit: { code: null, cause: 'oom' },
  },
  {
    name: 'a queued write',
    changes: [],
    requests: [request('POST')],
    verdict: 'hold',
    rules: ['queued-request'],
  },
  {
    name: 'a path that the profile refuses',
    changes: [add('prod/db.sql')],
    verdict: 'deny',
    rules: ['profile-deny'],
    gate: { denyPaths: [{ path: '/home/u/app/prod', why: 'never by an agent' }] },
  },
  {
    name: 'a path that the profile refuses, in capitals',
    changes: [add('PROD/db.sql')],
    verdict: 'deny',
    rules: ['profile-deny'],
    gate: { denyPaths: [{ path: '/home/u/app/prod/**', why: 'never by an agent' }] },
  },
  {
    name: 'a path that the profile holds',
    changes: [add('infra/a.tf')],
    verdict: 'hold',
    rules: ['profile-hold'],
    gate: { holdPaths: [{ path: '/home/u/app/**/*.tf', why: 'a person looks' }] },
  },
  {
    name: 'system paths',
    bases: ['/usr'],
    changes: [add('share/a')],
    verdict: 'hold',
    rules: ['system-path'],
  },
  {
    name: 'the root of everything',
    bases: ['/'],
    changes: [add('etc/ld.so.preload')],
    verdict: 'deny',
    rules: ['vector/ld-preload', 'system-path'],
  },
]
