import { createHash } from 'node:crypto'
import { add, type Case, modify } from './case.ts'

const text = (
  name: string,
  path: string,
  content: string | Uint8Array,
  rule: string,
  verdict: Case['verdict'] = 'hold',
): Case => ({
  name,
  changes: [add(path, content)],
  verdict,
  rules: [rule],
})
/** The letters of a token without a token in this file. */
const token = (...parts: string[]): string => parts.join('')
const noise = Buffer.concat(
  Array.from({ length: 256 }, (_, n) => createHash('sha256').update(`${n}`).digest()),
)

/** What a content hides or gives away. */
export const SECRETS: readonly Case[] = [
  text(
    'a private key',
    'deploy/key.txt',
    token('-----BEGIN OPENSSH ', 'PRIVATE KEY-----\nb3Bl\n'),
    'content/private-key',
  ),
  text('a pgp key', 'k.asc', token('-----BEGIN PGP ', 'PRIVATE KEY BLOCK-----\n'), 'content/private-key'),
  text('an AWS key', 'src/a.py', token('key = "AKIA', 'QWERTYUIOPASDFGH"\n'), 'content/access-token'),
  text(
    'a GitHub token',
    'src/a.js',
    token("t = 'ghp_", 'aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bD1fG3hJ5', "'\n"),
    'content/access-token',
  ),
  text('a GitLab token', 'ci.txt', token('glpat-', 'aB3dE5gH7jK9mN1pQ3sT\n'), 'content/access-token'),
  text(
    'an npm token',
    'a.txt',
    token('npm_', 'aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bD1fG3hJ5\n'),
    'content/access-token',
  ),
  text('a Slack token', 'a.txt', token('xoxb-', '2345678901-aB3dE5gH7jK9mN1p\n'), 'content/access-token'),
  text(
    'a password in a URL',
    'a.yml',
    'db: postgres://admin:Tr0ub4dor@db.internal/app\n',
    'content/password-in-url',
  ),
  {
    name: 'an environment file',
    changes: [add('.env', 'A=1\n')],
    verdict: 'hold',
    rules: ['vector/environment-file'],
  },
]

/** What is made to look like something else. */
export const DECEPTION: readonly Case[] = [
  text(
    'trojan source',
    'src/auth.c',
    'if (level != "user\u202e \u2066// admin\u2069 \u2066") {\n',
    'content/direction-control',
  ),
  text(
    'invisible text for agents',
    'README.md',
    'Hello\u{e0049}\u{e0067}\u{e006e} world\n',
    'content/invisible-text',
  ),
  text('zero width in an identifier', 'src/a.ts', 'const is\u200bAdmin = true\n', 'content/invisible-text'),
  text('terminal escapes', 'notes.txt', 'ok\x1b[2J\x1b[1;1Hall tests passed\n', 'content/terminal-escape'),
  text('overwriting carriage return', 'build.sh', 'rm -rf /\recho hello\n', 'content/terminal-escape'),
  text(
    'an encoded payload',
    'src/data.py',
    `p = "${'QWxhZGRpbjpvcGVuIHNlc2FtZQ9z3Kp7'.repeat(64)}"\n`,
    'content/encoded-blob',
  ),
  text('packed data of no format', 'assets/blob.bin', noise, 'content/high-entropy'),
  {
    name: 'escape sequence in a name',
    changes: [add('src/\x1b[31mred', '')],
    verdict: 'hold',
    rules: ['deceptive-name'],
  },
  {
    name: 'line break in a name',
    changes: [add('a\n{"verdict":"allow"}', '')],
    verdict: 'hold',
    rules: ['deceptive-name'],
  },
  {
    name: 'direction override in a name',
    changes: [add('invoice\u202efdp.exe', '')],
    verdict: 'hold',
    rules: ['deceptive-name'],
  },
  {
    name: 'invisible character in a name',
    changes: [add('src/ind\u200bex.ts', '')],
    verdict: 'hold',
    rules: ['deceptive-name'],
  },
  {
    name: 'a name that is no text',
    changes: [{ path: Buffer.from('ff2ffe', 'hex') }],
    verdict: 'hold',
    rules: ['name-not-text'],
  },
  {
    name: 'two names that are one elsewhere',
    changes: [add('src/Config.ts', ''), add('src/config.ts', '')],
    verdict: 'hold',
    rules: ['name-collision'],
  },
  {
    name: 'source hidden from diffs',
    changes: [modify('.gitattributes', '*.ts -diff\n')],
    verdict: 'hold',
    rules: ['content/git-attributes-hidden'],
  },
]
