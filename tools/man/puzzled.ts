import { example, heading, item, page, prose, seeAlso } from './roff.ts'

const DESCRIPTION = `\`puzzled\` runs agents in branches for everybody on the machine who may ask for it, and commits what was allowed. It serves \`org.puzzled1\` on the
system bus; \`puzzlectl\`(1) and other programs are its clients. It must run as root.

When it starts, it reads its configuration, takes the lock of the store, and follows the journal of every commit that a crash has interrupted: forward
to the new tree, or back to the old one. Only then does it say that it is ready. What cannot be finished either way is \`commit-stuck\` and visible.

When it is asked to stop, running agents are ended and their branches become \`stopped\`. What they wrote is kept and never committed by itself. After a
crash the same happens at the next start.`

const RIGHTS = `A caller is identified by the credentials of its connection and by its cgroup. A process inside a branch is refused everything. Where polkit runs, it is
asked about \`org.puzzled1.manage\`, \`org.puzzled1.approve\` or \`org.puzzled1.administer\`. Elsewhere members of the group \`puzzled\` run agents and manage
branches of their own, members of \`puzzled-reviewers\` see every branch and decide about held changesets, and root may do everything. A path is committed only
if the person who asked for the branch could have written it.`

const SIGNALS: readonly (readonly [string, string])[] = [
  ['SIGTERM, SIGINT', 'End the agents in order and stop.'],
  [
    'SIGHUP',
    'Read configuration, profiles and policies again: all of them, or none if one is bad. `Reload` on the bus does the same and answers with what is wrong.',
  ],
]

const FILES: readonly (readonly [string, string])[] = [
  ['/etc/puzzled/puzzled.yaml', 'Configuration.'],
  [
    '/var/lib/puzzled/branches/',
    'One folder per branch: its record, its layers, its queued requests, what its agent wrote. Mode 0700.',
  ],
  ['/var/lib/puzzled/journal/', 'Intents of commits. Recovery reads them.'],
  [
    '/var/lib/puzzled/staging/',
    'What a commit is about to put in place, and the old versions that a revert needs.',
  ],
  ['/var/lib/puzzled/policy/', 'Approvals, and the log of decisions.'],
  ['/var/lib/puzzled/audit/', 'The audit log, its key and its public key.'],
  ['/var/lib/puzzled/trash/', 'What is being removed.'],
  ['/run/puzzled/', "Sockets: of agents' terminals, and of the metrics."],
  ['.puzzled/', 'In the root of each other filesystem that was committed to: the same as `staging/`.'],
]

export const puzzledPage = (): string =>
  page('puzzled', 8, 'System Administration', [
    `${heading('Name')}puzzled \\- runs AI agents in kernel\\-enforced branches\n`,
    `${heading('Synopsis')}.B puzzled\n[\\fB\\-\\-config\\fR \\fIfile\\fR]\n[\\fB\\-\\-check\\-config\\fR]\n.br\n.B puzzled \\-\\-version\n`,
    `${heading('Description')}${prose(DESCRIPTION)}`,
    heading('Options'),
    item('`--config` *file*', 'Read this configuration instead of `/etc/puzzled/puzzled.yaml`.'),
    item(
      '`--check-config`',
      'Read the configuration and end: with status 0, or with the first mistake, its line, and status 78.',
    ),
    item('`--version`', 'Print the version.'),
    `${heading('Who may do what')}${prose(RIGHTS)}`,
    heading('Signals'),
    ...SIGNALS.map(([name, text]) => item(`\`${name}\``, text)),
    heading('Files'),
    ...FILES.map(([name, text]) => item(`\`${name}\``, text)),
    heading('Exit status'),
    item('0', 'It was told to stop.'),
    item('69', 'The bus went away, or something that the daemon needs is missing.'),
    item('75', 'Another process uses the store.'),
    item('78', 'The configuration is malformed, or the store is on a filesystem that cannot hold one.'),
    prose('Others are those of `puzzlectl`(1).'),
    `${heading('Examples')}${prose('Make it a service of this machine, and look whether it runs:')}${example('sudo puzzlectl daemon install\npuzzlectl daemon status')}`,
    seeAlso(['puzzlectl(1)', 'puzzled.yaml(5)', 'puzzle-profile(5)', 'systemd.service(5)']),
  ])
