import { add, type Case, ELF, folder, link, modify, program, remove } from './case.ts'

const gitConfig = (more = ''): string =>
  `[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n[remote "origin"]\n\turl = https://example.org/app.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n${more}`
const many = (count: number, make: (n: number) => ReturnType<typeof add>) =>
  Array.from({ length: count }, (_, n) => make(n))

/** Files and repositories that look like something they are not. */
export const FILES: readonly Case[] = [
  {
    name: 'documents',
    changes: [
      modify('README.md', '# App\n\n    curl -fsSL https://example.org/install.sh | sh\n'),
      add('docs/guide.md', '# Guide\n'),
    ],
    verdict: 'allow',
  },
  {
    name: 'directories called bin, etc, tmp and run',
    changes: [
      add('bin/README', 'x'),
      add('etc/cron.d/backup', 'x'),
      add('etc/passwd', 'x'),
      add('tmp/a', 'x'),
      add('run/pid', '1'),
      add('usr/lib/systemd/a', 'x'),
      add('boot/grub.cfg', 'x'),
      add('root/.keep', ''),
    ],
    verdict: 'allow',
  },
  {
    name: 'directories called hooks and config',
    changes: [add('src/hooks/useThing.ts', ''), add('config/app.json', '{}'), add('hooks/deploy.py', '')],
    verdict: 'allow',
  },
  {
    name: 'names that only resemble vectors',
    changes: [
      add('bashrc.md', ''),
      add('docs/claude.mdx', ''),
      add('src/gitconfig.ts', ''),
      add('my.git/hooks/a', ''),
      add('package.json5', '{}'),
      add('envrc', ''),
    ],
    verdict: 'allow',
  },
  {
    name: 'a shell script that may be executed',
    changes: [program('scripts/release.sh')],
    verdict: 'allow',
    rules: ['executable'],
  },
  {
    name: 'a script loses its executable bit',
    changes: [{ kind: 'metadata', path: 'scripts/a.sh', oldMode: 0o755, mode: 0o644 }],
    verdict: 'allow',
  },
  {
    name: 'git: a commit',
    changes: [
      modify('src/a.ts'),
      add('.git/objects/ab/cdef0123', 'x\x01\0'),
      modify('.git/index', 'DIRC\0'),
      modify('.git/refs/heads/main', 'abc\n'),
      modify('.git/logs/HEAD', 'abc\n'),
      modify('.git/COMMIT_EDITMSG', 'fix\n'),
      modify('.git/HEAD', 'ref: refs/heads/main\n'),
    ],
    verdict: 'allow',
  },
  {
    name: 'git: a branch with its upstream',
    changes: [
      add('.git/refs/heads/feature', 'abc\n'),
      modify(
        '.git/config',
        gitConfig('[branch "feature"]\n\tremote = origin\n\tmerge = refs/heads/feature\n'),
        gitConfig(),
      ),
    ],
    verdict: 'allow',
    rules: ['vector/git-config'],
  },
  {
    name: 'git: repack',
    changes: [
      add('.git/objects/pack/pack-1.pack', 'PACK\0'),
      add('.git/objects/pack/pack-1.idx', '\0'),
      ...many(300, (n) => remove(`.git/objects/00/${n}`)),
      modify('.git/packed-refs', '# pack-refs\n'),
    ],
    verdict: 'allow',
  },
  {
    name: 'git: a new repository',
    changes: [
      folder('.git'),
      folder('.git/hooks'),
      add('.git/HEAD', 'ref: refs/heads/main\n'),
      add('.git/config', gitConfig()),
      add('.git/description', 'x\n'),
      { path: '.git/hooks/pre-commit.sample', mode: 0o755, content: '#!/bin/sh\n' },
      add('.git/info/exclude', '# x\n'),
      folder('.git/objects'),
      folder('.git/refs/heads'),
    ],
    verdict: 'allow',
    rules: ['vector/git-config', 'executable'],
  },
  {
    name: 'git: ignore rules and plain attributes',
    changes: [modify('.gitignore', 'dist\n'), modify('.gitattributes', '* text=auto eol=lf\n*.png binary\n')],
    verdict: 'allow',
    rules: ['vector/git-attributes'],
  },
  {
    name: 'git: large files by lfs',
    changes: [modify('.gitattributes', '*.psd filter=lfs diff=lfs merge=lfs -text\n')],
    verdict: 'allow',
    rules: ['vector/git-attributes'],
  },
  {
    name: 'a relative link within the tree',
    changes: [link('docs/latest', 'v2/index.md'), link('node_modules/.bin/tsc', '../typescript/bin/tsc')],
    verdict: 'allow',
    rules: ['vector/installed-programs'],
  },
  {
    name: 'a virtual environment',
    changes: [
      link('.venv/bin/python', '/usr/bin/python3'),
      add('.venv/lib/python3.12/site-packages/a/__init__.py', ''),
    ],
    verdict: 'allow',
    rules: ['symlink-outside', 'vector/installed-programs'],
  },
  {
    name: 'node_modules with a native addon',
    changes: [
      { path: 'node_modules/a/build/Release/a.node', mode: 0o755, content: ELF },
      add('node_modules/a/index.js', ''),
    ],
    verdict: 'allow',
    rules: ['native-executable', 'executable'],
  },
  {
    name: 'pictures, fonts and archives',
    changes: [add('a.png', '\x89PNG\r\n\x1a\n\0'), add('f.woff2', 'wOF2\0'), add('a.zip', 'PK\x03\x04\0')],
    verdict: 'allow',
  },
  {
    name: 'a data URL with a picture',
    changes: [
      add(
        'src/logo.ts',
        `export const logo = 'data:image/png;base64,${'iVBORw0KGgoAAAANSUhEUg'.repeat(60)}'\n`,
      ),
    ],
    verdict: 'allow',
  },
  {
    name: 'a minified bundle',
    changes: [add('dist/app.min.js', `var a=${'"xyzzy",'.repeat(2000)}0\n`)],
    verdict: 'allow',
  },
  {
    name: 'snapshots and fixtures',
    changes: [
      modify('src/__snapshots__/a.test.ts.snap', 'exports[`a`] = `1`\n'),
      add('test/fixtures/a.json', '{}\n'),
    ],
    verdict: 'allow',
  },
  {
    name: 'names in other scripts',
    changes: [
      add('docs/übersicht.md', ''),
      add('docs/概要.md', ''),
      add('docs/обзор.md', ''),
      add('docs/résumé.md', ''),
    ],
    verdict: 'allow',
  },
  {
    name: 'texts in other scripts',
    changes: [
      add('locale/ar.json', '{"a":"مرحبا"}\n'),
      add('locale/he.json', '{"a":"שלום"}\n'),
      add('locale/ja.json', '{"a":"こんにちは"}\n'),
    ],
    verdict: 'allow',
  },
  {
    name: 'names with spaces and quotes',
    changes: [add('My Documents/it\'s "fine".txt', 'x'), add('a b/c d', 'x')],
    verdict: 'allow',
  },
  {
    name: 'example credentials in documentation',
    changes: [
      add(
        'docs/setup.md',
        'AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE\npostgres://user:password@localhost/app\n',
      ),
      add('.env.example', 'TOKEN=your-token\n'),
    ],
    verdict: 'allow',
  },
  {
    name: 'a public key and a certificate',
    changes: [
      add('keys/app.pub', 'ssh-ed25519 AAAA u@h\n'),
      add('certs/ca.crt', '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'),
    ],
    verdict: 'allow',
  },
  { name: 'windows line ends', changes: [add('src/win.txt', 'a\r\nb\r\n')], verdict: 'allow' },
  {
    name: 'an empty file, an empty directory',
    changes: [add('.gitkeep', ''), folder('logs')],
    verdict: 'allow',
  },
  {
    name: 'five hundred files',
    changes: many(500, (n) => modify(`src/file${n}.ts`, `export const n = ${n}\n`)),
    verdict: 'allow',
  },
  {
    name: 'a notebook',
    changes: [modify('analysis.ipynb', `{"cells":[{"outputs":["${'iVBORw0KGgo'.repeat(200)}"]}]}\n`)],
    verdict: 'allow',
  },
  {
    name: 'a sticky shared directory',
    changes: [{ path: 'spool', dir: true, mode: 0o1777 }],
    verdict: 'allow',
  },
  {
    name: 'a docker file and compose',
    changes: [modify('Dockerfile', 'FROM scratch\n'), modify('compose.yaml', 'services: {}\n')],
    verdict: 'allow',
    rules: ['vector/container-build'],
  },
  {
    name: 'sql migrations',
    changes: [add('migrations/0001_init.sql', 'create table a (b int);\n')],
    verdict: 'allow',
  },
  {
    name: 'terraform modules',
    changes: [modify('infra/main.tf', 'resource "x" "y" {}\n')],
    verdict: 'allow',
  },
]
