import type { Verb } from './verb.ts'

/** Requests that wait for a commit. */
export const QUEUE: Verb = {
  name: 'queue',
  group: 'Decide',
  summary: 'requests that wait for the commit of a branch',
  load: () => import('./commands/queue/ls.ts'),
  verbs: [
    {
      name: 'ls',
      group: 'Decide',
      args: '<id>',
      summary: 'the requests of a branch, in the order in which they are sent',
      load: () => import('./commands/queue/ls.ts'),
    },
    {
      name: 'show',
      group: 'Decide',
      args: '<id> <request>',
      summary: 'one request with its headers and body',
      load: () => import('./commands/queue/show.ts'),
    },
    {
      name: 'drop',
      group: 'Decide',
      args: '<id> <request>',
      summary: 'leave a request out before the commit',
      options: [['-m, --message <why>', 'why']],
      load: () => import('./commands/queue/drop.ts'),
    },
    {
      name: 'edit',
      group: 'Decide',
      args: '<id> <request>',
      summary: 'change a request before the commit, in $EDITOR or by options; the branch is judged again',
      options: [
        ['--method <method>', 'another method'],
        ['--url <url>', 'another URL'],
        ['--header <line>', '"Name: value" sets a header, "Name:" takes it away', 'repeat'],
        ['--body <file>', 'the body from a file ("-": from standard input)'],
        ['-m, --message <why>', 'why'],
      ],
      load: () => import('./commands/queue/edit.ts'),
    },
    {
      name: 'resume',
      group: 'Decide',
      args: '<id> <request>',
      summary: 'try a failed or unknown request again (an unknown one may then arrive twice)',
      options: [['-m, --message <why>', 'why']],
      load: () => import('./commands/queue/resume.ts'),
    },
    {
      name: 'skip',
      group: 'Decide',
      args: '<id> <request>',
      summary: 'leave out the request at which the replay stopped, and go on',
      options: [['-m, --message <why>', 'why']],
      load: () => import('./commands/queue/skip.ts'),
    },
  ],
}

/** What the network rules say. */
export const NET: Verb = {
  name: 'net',
  group: 'Look',
  summary: 'what the network rules of a branch or profile say',
  load: () => import('./commands/net/test.ts'),
  verbs: [
    {
      name: 'test',
      group: 'Look',
      args: '<branch|profile> <method> <url>',
      summary: 'which rule decides about a request, and how; nothing is sent',
      options: [['--branch', 'the name is that of a branch, even if a profile has it too']],
      load: () => import('./commands/net/test.ts'),
    },
  ],
}
