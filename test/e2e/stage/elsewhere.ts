// pure

/** Commands of documents that the stage cannot run, each with the reason and with who runs it instead. */
export interface Elsewhere {
  document: string
  command: string
  where: 'ci' | 'vm' | 'nowhere'
  why: string
}

export const ELSEWHERE: readonly Elsewhere[] = [
  {
    document: 'README.md',
    command: 'npm ci && sudo npm test',
    where: 'ci',
    why: 'it is the run of which this test is a part',
  },
  {
    document: 'CONTRIBUTING.md',
    command: 'npm ci',
    where: 'ci',
    why: 'needs the package registry; .ci/run begins with it',
  },
  { document: 'CONTRIBUTING.md', command: 'npm run ok', where: 'ci', why: 'a leg of tools/ci.mjs' },
  {
    document: 'CONTRIBUTING.md',
    command: 'npm test',
    where: 'ci',
    why: 'it is the run of which this test is a part',
  },
  { document: 'CONTRIBUTING.md', command: 'npm run test:vm', where: 'ci', why: 'a leg of tools/ci.mjs' },
  { document: 'CONTRIBUTING.md', command: '.ci/run', where: 'ci', why: 'it runs everything, this test too' },
  {
    document: 'docs/operations.md',
    command: 'sudo apt-get install ./puzzled_NEW_amd64.deb',
    where: 'vm',
    why: 'test/vm/checks/deb.test.ts installs the package',
  },
  ...[
    ['docs/operations.md', 'install'],
    ['docs/operations.md', 'status'],
    ['docs/operations.md', 'uninstall'],
    ['docs/man/puzzled.8', 'install'],
    ['docs/man/puzzled.8', 'status'],
  ].map(([document = '', verb]) => ({
    document,
    command: `${verb === 'status' ? '' : 'sudo '}puzzlectl daemon ${verb}`,
    where: 'vm' as const,
    why: 'needs systemd as PID 1; test/vm/checks/documents.test.ts runs it',
  })),
]

/** A command without the comment behind it. */
export const bare = (command: string): string => command.replace(/\s+#.*$/, '').trim()

export const elsewhere = (document: string, command: string): Elsewhere | undefined =>
  ELSEWHERE.find((entry) => entry.document === document && entry.command === bare(command))
