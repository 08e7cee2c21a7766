import { add, type Case, modify } from './case.ts'

const script = (name: string): Case => ({
  name: `package.json: ${name} is added`,
  changes: [modify('package.json', JSON.stringify({ scripts: { [name]: 'node x.js' } }), '{}')],
  verdict: 'hold',
  rules: ['content/lifecycle-script'],
})
const lock = (path: string, content: string, rule = 'content/lockfile-host'): Case => ({
  name: `${path}: ${content.slice(0, 40)}`,
  changes: [modify(path, content, '')],
  verdict: 'hold',
  rules: [rule],
})
/** Scripts and sources of package managers. */
export const PACKAGES: readonly Case[] = [
  ...['preinstall', 'install', 'postinstall', 'prepare', 'prepack', 'dependencies'].map(script),
  {
    name: 'package.json that is no JSON',
    changes: [add('package.json', '{')],
    verdict: 'hold',
    rules: ['content/unreadable'],
  },
  {
    name: 'package.json: a lifecycle script is changed',
    changes: [
      modify(
        'package.json',
        JSON.stringify({ scripts: { prepare: 'sh x' } }),
        JSON.stringify({ scripts: { prepare: 'husky' } }),
      ),
    ],
    verdict: 'hold',
    rules: ['content/lifecycle-script'],
  },
  lock(
    'package-lock.json',
    '{"packages":{"node_modules/a":{\n"resolved":"https://evil.example/a.tgz",\n"integrity":"sha512-a"}}}',
  ),
  lock(
    'package-lock.json',
    '{"packages":{"node_modules/a":{\n"resolved":"git+ssh://git@github.com/a/b.git#1",\n"integrity":"sha512-a"}}}',
  ),
  lock(
    'package-lock.json',
    '{"packages":{"node_modules/a":{\n"resolved":"http://registry.npmjs.org/a.tgz",\n"integrity":"sha512-a"}}}',
    'content/lockfile-plain-http',
  ),
  lock(
    'package-lock.json',
    '{"packages":{"node_modules/a":{\n"resolved":"https://registry.npmjs.org/a.tgz"}}}',
    'content/lockfile-integrity',
  ),
  lock(
    'package-lock.json',
    '{"packages":{"node_modules/a":{\n"resolved":"https://registry.npmjs.org@evil.example/a.tgz",\n"integrity":"sha512-a"}}}',
  ),
  lock(
    'package-lock.json',
    '{"packages":{"node_modules/a":{\n"resolved":"https://registry.npmjs.org.evil.example/a.tgz",\n"integrity":"sha512-a"}}}',
  ),
  lock('yarn.lock', '  resolved "https://evil.example/a.tgz"\n'),
  lock('pnpm-lock.yaml', '    resolution: {tarball: https://codeload.github.com/a/b/tar.gz/c}\n'),
  lock('Cargo.lock', 'source = "git+https://github.com/evil/serde#abc"\n'),
  lock('Cargo.lock', 'source = "registry+https://evil.example/index"\n'),
  lock('poetry.lock', 'url = "https://evil.example/simple"\n'),
  lock('uv.lock', 'source = { registry = "https://evil.example/simple" }\n'),
  lock('Gemfile.lock', 'GEM\n  remote: https://evil.example/\n'),
]
