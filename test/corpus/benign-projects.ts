import { add, type Case, ELF, folder, modify, remove } from './case.ts'

const manifest = (version: string, extra: object = {}): string =>
  JSON.stringify({ name: 'app', version, scripts: { test: 'vitest', build: 'tsc' }, ...extra }, null, 2)
const npmLock = (version: string): string =>
  JSON.stringify({
    name: 'app',
    lockfileVersion: 3,
    packages: {
      '': { name: 'app' },
      'node_modules/left': {
        version,
        resolved: `https://registry.npmjs.org/left/-/left-${version}.tgz`,
        integrity: 'sha512-K3vVZr2cM0V2m1p6iJ3nRrJx2Zb2D0d2c1dXlQ1YQm0sT1x3Yw0kZQpQ0b2v5l8i1r9w==',
        funding: { url: 'https://opencollective.com/left' },
      },
    },
  })
const cargoLock = (version: string): string =>
  `[[package]]\nname = "serde"\nversion = "${version}"\nsource = "registry+https://github.com/rust-lang/crates.io-index"\nchecksum = "0123"\n`
/** Refactorings and updates in projects of several languages. */
export const PROJECTS: readonly Case[] = [
  { name: 'nothing at all', changes: [], verdict: 'allow' },
  { name: 'one source file', changes: [modify('src/index.ts', 'export const a = 1\n')], verdict: 'allow' },
  {
    name: 'node: a function moves to a new file',
    changes: [
      modify('src/a.ts', "import './b.ts'\n"),
      add('src/b.ts', 'export {}\n'),
      modify('src/a.test.ts', ''),
    ],
    verdict: 'allow',
  },
  {
    name: 'node: a folder is renamed',
    changes: [
      remove('lib/a.js'),
      remove('lib/b.js'),
      remove('lib'),
      folder('src'),
      add('src/a.js'),
      add('src/b.js'),
    ],
    verdict: 'allow',
  },
  {
    name: 'node: a dependency is updated',
    changes: [
      modify('package.json', manifest('1.0.1'), manifest('1.0.0')),
      modify('package-lock.json', npmLock('2.0.0'), npmLock('1.0.0')),
    ],
    verdict: 'allow',
    rules: ['vector/npm-manifest'],
  },
  {
    name: 'node: yarn lock',
    changes: [
      modify(
        'yarn.lock',
        'left@^1:\n  version "1.0.0"\n  resolved "https://registry.yarnpkg.com/left/-/left-1.0.0.tgz#abc"\n',
        '',
      ),
    ],
    verdict: 'allow',
  },
  {
    name: 'node: pnpm lock',
    changes: [
      modify(
        'pnpm-lock.yaml',
        "lockfileVersion: '9.0'\npackages:\n  left@1.0.0:\n    resolution: {integrity: sha512-abc}\n",
        '',
      ),
    ],
    verdict: 'allow',
  },
  {
    name: 'node: a script is added',
    changes: [
      modify(
        'package.json',
        manifest('1.0.0', { scripts: { test: 'vitest', build: 'tsc', lint: 'biome' } }),
        manifest('1.0.0'),
      ),
    ],
    verdict: 'allow',
    rules: ['vector/npm-manifest', 'content/script-changed'],
  },
  {
    name: 'node: an old postinstall stays as it was',
    changes: [
      modify(
        'package.json',
        manifest('2.0.0', { scripts: { postinstall: 'node-gyp rebuild' } }),
        manifest('1.0.0', { scripts: { postinstall: 'node-gyp rebuild' } }),
      ),
    ],
    verdict: 'allow',
    rules: ['vector/npm-manifest'],
  },
  {
    name: 'node: test and bundler configuration',
    changes: [modify('vitest.config.ts', ''), modify('vite.config.ts', '')],
    verdict: 'allow',
    rules: ['vector/test-hook', 'vector/tool-script'],
  },
  {
    name: 'node: monorepo packages',
    changes: [
      modify('packages/a/src/x.ts'),
      modify('packages/b/src/y.ts'),
      add('packages/b/README.md', '# b\n'),
    ],
    verdict: 'allow',
  },
  {
    name: 'python: a module and its test',
    changes: [add('app/models.py', 'class A: ...\n'), modify('tests/test_models.py', '')],
    verdict: 'allow',
  },
  {
    name: 'python: a fixture',
    changes: [modify('tests/conftest.py', 'import pytest\n')],
    verdict: 'allow',
    rules: ['vector/test-hook'],
  },
  {
    name: 'python: project metadata and lock',
    changes: [
      modify('pyproject.toml', '[project]\nname = "a"\n'),
      modify('poetry.lock', '[[package]]\nname = "a"\n', ''),
    ],
    verdict: 'allow',
    rules: ['vector/build-script'],
  },
  {
    name: 'python: uv lock',
    changes: [
      modify(
        'uv.lock',
        'source = { registry = "https://pypi.org/simple" }\nurl = "https://files.pythonhosted.org/packages/a.whl"\n',
        '',
      ),
    ],
    verdict: 'allow',
  },
  {
    name: 'python: compiled caches',
    changes: [add('app/__pycache__/a.cpython-312.pyc', 'x\0y')],
    verdict: 'allow',
  },
  {
    name: 'go: a package is split',
    changes: [
      add('internal/store/store.go', 'package store\n'),
      modify('cmd/app/main.go', 'package main\n'),
      remove('store.go'),
    ],
    verdict: 'allow',
  },
  {
    name: 'go: modules are updated',
    changes: [modify('go.mod', 'module a\n'), modify('go.sum', 'example.org/a v1.0.0 h1:abc=\n')],
    verdict: 'allow',
  },
  {
    name: 'go: vendored sources',
    changes: [add('vendor/example.org/a/a.go', 'package a\n'), modify('vendor/modules.txt', '# a\n')],
    verdict: 'allow',
  },
  {
    name: 'go: generated code',
    changes: [modify('api/api.pb.go', '// Code generated by protoc. DO NOT EDIT.\n')],
    verdict: 'allow',
  },
  {
    name: 'rust: a crate is split',
    changes: [
      add('crates/b/src/lib.rs', 'pub fn b() {}\n'),
      add('crates/b/Cargo.toml', '[package]\n'),
      modify('Cargo.toml', '[workspace]\n'),
    ],
    verdict: 'allow',
    rules: ['vector/build-script'],
  },
  {
    name: 'rust: the lock is updated',
    changes: [modify('Cargo.lock', cargoLock('1.0.1'), cargoLock('1.0.0'))],
    verdict: 'allow',
  },
  {
    name: 'rust: a build directory',
    changes: [
      add('target/debug/.fingerprint/a/dep', 'x'),
      { path: 'target/debug/app', mode: 0o755, content: ELF },
    ],
    verdict: 'allow',
    rules: ['native-executable', 'executable'],
  },
  {
    name: 'c: sources and a makefile',
    changes: [
      modify('src/main.c', 'int main(void) { return 0; }\n'),
      modify('Makefile', 'all:\n\tcc main.c\n'),
    ],
    verdict: 'allow',
    rules: ['vector/makefile'],
  },
  {
    name: 'java: sources and pom',
    changes: [modify('src/main/java/A.java', 'class A {}\n'), modify('pom.xml', '<project/>\n')],
    verdict: 'allow',
    rules: ['vector/build-script'],
  },
  {
    name: 'ruby: gem lock',
    changes: [modify('Gemfile.lock', 'GEM\n  remote: https://rubygems.org/\n', '')],
    verdict: 'allow',
  },
  {
    name: 'php: composer lock',
    changes: [
      modify(
        'composer.lock',
        '{"dist":{"type":"zip","url":"https://api.github.com/repos/a/b/zipball/c"}}\n',
        '',
      ),
    ],
    verdict: 'allow',
  },
]
