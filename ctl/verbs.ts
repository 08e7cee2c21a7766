import type { Verb } from './verb.ts'

const SELECTION = [
  ['--only <glob>', 'only these paths', 'repeat'],
  ['--except <glob>', 'all but these paths', 'repeat'],
] as const

/** Every verb of `puzzlectl`; its module is loaded when it is called. */
export const VERBS: readonly Verb[] = [
  {
    name: 'run',
    group: 'Run',
    args: '<command...>',
    summary: 'run a command in a new branch of the current directory',
    passThrough: true,
    options: [
      ['--base <dir>', 'directory to fork (default: the current one)', 'repeat'],
      ['--profile <name|file>', 'what the command may do (default: standard)'],
      ['--then <gate|hold|discard>', 'what follows when it has ended (default: gate)'],
      ['--name <name>', 'a name for the branch'],
      ['--env <name[=value]>', 'pass or set a variable', 'repeat'],
      ['--budget <kind=value>', 'a lower limit: wall=10m, memory=2G, pids=100, …', 'repeat'],
      ['--detach', 'return as soon as the command runs (needs the daemon)'],
    ],
    load: () => import('./commands/run.ts'),
  },
  {
    name: 'explain',
    group: 'Run',
    args: '<command...>',
    summary: 'print the system calls of a start without making any',
    passThrough: true,
    options: [
      ['--base <dir>', 'directory to fork (default: the current one)', 'repeat'],
      ['--profile <name|file>', 'what the command may do (default: standard)'],
    ],
    load: () => import('./commands/explain.ts'),
  },
  {
    name: 'ls',
    group: 'Look',
    summary: 'list branches',
    options: [['--all', 'also committed and discarded ones']],
    load: () => import('./commands/ls.ts'),
  },
  {
    name: 'show',
    group: 'Look',
    args: '<id>',
    summary: 'what a branch is, what it was granted, what was found',
    load: () => import('./commands/show.ts'),
  },
  {
    name: 'diff',
    group: 'Look',
    args: '<id>',
    summary: 'what a branch would change',
    options: [
      ['--stat', 'one line per file'],
      ['--name-only', 'only the paths'],
    ],
    load: () => import('./commands/diff.ts'),
  },
  {
    name: 'review',
    group: 'Decide',
    args: '<id>',
    summary: 'have a branch judged again',
    load: () => import('./commands/review.ts'),
  },
  {
    name: 'approve',
    group: 'Decide',
    args: '<id>',
    summary: 'approve a held branch and commit it',
    options: [
      ['--digest <digest>', 'refuse if it is no longer this'],
      ['-m, --message <why>', 'why'],
      ...SELECTION,
    ],
    load: () => import('./commands/approve.ts'),
  },
  {
    name: 'reject',
    group: 'Decide',
    args: '<id>',
    summary: 'reject a held branch; nothing of it will land',
    options: [['-m, --message <why>', 'why']],
    load: () => import('./commands/reject.ts'),
  },
  {
    name: 'commit',
    group: 'Decide',
    args: '<id>',
    summary: 'judge a branch and commit it if that is allowed',
    options: SELECTION,
    load: () => import('./commands/commit.ts'),
  },
  {
    name: 'discard',
    group: 'Decide',
    args: '<id...>',
    summary: 'throw branches away',
    load: () => import('./commands/discard.ts'),
  },
  {
    name: 'revert',
    group: 'Decide',
    args: '<commit>',
    summary: 'land the reverse of a commit',
    load: () => import('./commands/revert.ts'),
  },
  {
    name: 'doctor',
    group: 'System',
    summary: 'what this machine can do, what is lost where it cannot, and what mends it',
    load: () => import('./commands/doctor.ts'),
  },
  {
    name: 'gc',
    group: 'System',
    summary: 'remove what retention allows',
    load: () => import('./commands/gc.ts'),
  },
  {
    name: 'daemon',
    group: 'System',
    summary: 'make the daemon a service of this machine',
    load: () => import('./commands/daemon/status.ts'),
    verbs: [
      {
        name: 'install',
        group: 'System',
        summary: 'write the unit, bus and polkit files and start the daemon',
        load: () => import('./commands/daemon/install.ts'),
      },
      {
        name: 'uninstall',
        group: 'System',
        summary: 'stop the daemon and remove those files; the store stays',
        load: () => import('./commands/daemon/uninstall.ts'),
      },
      {
        name: 'status',
        group: 'System',
        summary: 'is it installed, current and running (exit 3: it does not run)',
        load: () => import('./commands/daemon/status.ts'),
      },
    ],
  },
]
