import { add, type Case, link, modify, program, remove } from './case.ts'

const gitConfig = (name: string, lines: string): Case => ({
  name: `git config: ${name}`,
  changes: [modify('.git/config', `[core]\n\tbare = false\n${lines}`, '[core]\n\tbare = false\n')],
  verdict: 'hold',
  rules: ['content/git-config-command', 'vector/git-config'],
})
/** Ways to have git run something, or to take its history. */
export const GIT: readonly Case[] = [
  gitConfig('fsmonitor', '\tfsmonitor = ./x.sh\n'),
  gitConfig('hooksPath', '\thooksPath = .evil\n'),
  gitConfig('sshCommand', '\tsshCommand = sh -c id\n'),
  gitConfig('pager', '\tpager = sh -c id\n'),
  gitConfig('editor', '\teditor = sh -c id\n'),
  gitConfig('a filter', '[filter "x"]\n\tclean = sh -c id\n'),
  gitConfig('a filter on the header line', '[filter "x"] clean = sh -c id\n'),
  gitConfig('an alias', '[alias]\n\tst = !sh -c id\n'),
  gitConfig('a credential helper', '[credential]\n\thelper = !sh\n'),
  gitConfig('an include', '[include]\n\tpath = ../x\n'),
  gitConfig('a conditional include', '[includeIf "gitdir:/"]\n\tpath = ../x\n'),
  gitConfig('a rewritten URL', '[url "https://evil.example/"]\n\tinsteadOf = https://\n'),
  gitConfig('a textconv', '[diff "x"]\n\ttextconv = sh\n'),
  gitConfig('mixed case', '[CoRe]\n\tFsMonitor = ./x.sh\n'),
  gitConfig('an external transport', '[remote "o"]\n\turl = ext::sh -c id\n'),
  gitConfig('an upload-pack program', '[remote "o"]\n\tuploadpack = sh\n'),
  gitConfig('a gpg program', '[gpg]\n\tprogram = sh\n'),
  gitConfig('a worktree elsewhere', '[core]\n\tworktree = /\n'),
  gitConfig('a key of the future', '[core]\n\tnewThing = sh\n'),
  gitConfig('what cannot be parsed', 'nonsense here\n'),
  {
    name: 'git config: origin leads elsewhere',
    changes: [
      modify(
        '.git/config',
        '[remote "origin"]\n\turl = https://evil.example/a\n',
        '[remote "origin"]\n\turl = https://example.org/a\n',
      ),
    ],
    verdict: 'hold',
    rules: ['content/git-config-remote'],
  },
  {
    name: 'git attributes: a filter',
    changes: [add('.gitattributes', '* filter=x\n')],
    verdict: 'hold',
    rules: ['content/git-attributes-driver'],
  },
  {
    name: 'a planted bare repository',
    changes: [
      add('docs/HEAD', 'ref: refs/heads/main\n'),
      add('docs/config', '[core]\n\tbare = true\n'),
      add('docs/objects/ab/c', ''),
      add('docs/refs/heads/main', ''),
    ],
    verdict: 'hold',
    rules: ['planted-repository'],
  },
  {
    name: 'a planted bare repository in capitals',
    changes: [add('x/head', ''), add('x/Refs/heads/main', '')],
    verdict: 'hold',
    rules: ['planted-repository'],
  },
  {
    name: 'history deleted',
    changes: [remove('.git/HEAD'), remove('.git/config')],
    verdict: 'hold',
    rules: ['history-deleted'],
  },
  {
    name: 'a hook with an invisible character',
    changes: [add('.git/hooks/pre\u200b-commit', '')],
    verdict: 'hold',
    rules: ['vector/git-hook', 'deceptive-name'],
  },
  {
    name: 'hooks of a full-width git',
    changes: [add('.\uff47\uff49\uff54/hooks/pre-commit', '')],
    verdict: 'hold',
    rules: ['vector/git-hook'],
  },
  {
    name: 'hooks directory by symlink',
    changes: [link('.git/hooks', '../tools/hooks'), program('tools/hooks/pre-commit')],
    verdict: 'hold',
    rules: ['vector/git-hook'],
  },
  {
    name: 'git directory by symlink',
    changes: [
      link('.git', 'tools/repo'),
      program('tools/repo/hooks/pre-commit'),
      add('tools/repo/config', ''),
    ],
    verdict: 'hold',
    rules: ['vector/git-file', 'vector/git-hook', 'vector/git-config'],
  },
  {
    name: 'git directory by a chain of symlinks',
    changes: [link('.git', 'a'), link('a', 'b'), program('b/hooks/pre-commit')],
    verdict: 'hold',
    rules: ['vector/git-hook'],
  },
  {
    name: 'a hook that becomes executable',
    changes: [{ kind: 'metadata', path: '.git/hooks/pre-commit', oldMode: 0o644, mode: 0o755 }],
    verdict: 'hold',
    rules: ['vector/git-hook', 'executable'],
  },
]
