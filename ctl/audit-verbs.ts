import type { Verb } from './verb.ts'

/** The verbs below `audit`: they read the log and open no store. */
export const AUDIT: Verb = {
  name: 'audit',
  group: 'System',
  summary: 'read the audit log of a store',
  load: () => import('./commands/audit/verify.ts'),
  verbs: [
    {
      name: 'verify',
      group: 'System',
      summary: 'check every record and signature; name the first that is wrong',
      options: [
        ['--key <file>', 'public key (default: the one beside the log)'],
        [
          '--head <head>',
          'RECORDS:ROOT as this verb printed them earlier: the log must have grown from them',
        ],
      ],
      load: () => import('./commands/audit/verify.ts'),
    },
    {
      name: 'prove',
      group: 'System',
      args: '[record]',
      summary: 'prove that a record is in the log, by its number, or that the log only grew',
      options: [
        ['--size <records>', 'the log as it was with so many records'],
        ['--since <records>', 'instead of a record: so many were the beginning of the log as it is now'],
      ],
      load: () => import('./commands/audit/prove.ts'),
    },
    {
      name: 'trace',
      group: 'System',
      args: '<branch>',
      summary: 'everything on record about a branch or a commit',
      load: () => import('./commands/audit/trace.ts'),
    },
    {
      name: 'export',
      group: 'System',
      summary: 'print the log for another system',
      options: [['--format <jsonl|cef|ocsf>', 'default: jsonl']],
      load: () => import('./commands/audit/export.ts'),
    },
    {
      name: 'key',
      group: 'System',
      summary: 'print the public key that heads are signed for',
      load: () => import('./commands/audit/key.ts'),
    },
  ],
}

export const METRICS: Verb = {
  name: 'metrics',
  group: 'Look',
  summary: 'print what the daemon counts (OpenMetrics)',
  options: [['--socket <path>', 'its socket (default: metrics.sock in the runtime directory)']],
  load: () => import('./commands/metrics.ts'),
}

export const PROVE: Verb = {
  name: 'prove',
  group: 'System',
  summary: 'attack this machine from disposable branches; say what stops each attack (exit 1: nothing does)',
  options: [
    ['--report <file>', 'also write a signed report'],
    ['--verify <file>', 'check the signature of a report and show it, without any attack'],
    ['--key <file>', 'public key of the report (default: the one of the store)'],
  ],
  load: () => import('./commands/prove.ts'),
}

export const BLAME: Verb = {
  name: 'blame',
  group: 'Look',
  args: '<path>',
  summary: 'the last commits that touched a path: which agent, on whose behalf, and who let it through',
  options: [['-n, --number <count>', 'how many (default: 5)']],
  load: () => import('./commands/blame.ts'),
}
