// pure
import { lineOf } from './content-entropy.ts'
import type { ContentFinding } from './content-finding.ts'

/** Every pattern is linear: no nested repetition, because the agent writes what they run over. */
const SECRETS: readonly [rule: string, what: string, pattern: RegExp][] = [
  ['private-key', 'a private key', /-----BEGIN (?:[A-Z0-9]{2,12} ){0,2}PRIVATE KEY(?: BLOCK)?-----/g],
  ['access-token', 'an AWS access key', /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g],
  ['access-token', 'a GitHub token', /\b(?:gh[opsur]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{40})/g],
  ['access-token', 'a GitLab token', /\bglpat-[A-Za-z0-9_-]{20}/g],
  ['access-token', 'a Slack token', /\bxox[abeprs]-[A-Za-z0-9-]{20}/g],
  [
    'access-token',
    'a Slack webhook',
    /hooks\.slack\.com\/services\/T[A-Z0-9]{6,12}\/B[A-Z0-9]{6,12}\/[A-Za-z0-9]{20}/g,
  ],
  ['access-token', 'an npm token', /\bnpm_[A-Za-z0-9]{36}/g],
  ['access-token', 'a PyPI token', /\bpypi-AgEI[A-Za-z0-9_-]{50}/g],
  ['access-token', 'a Google API key', /\bAIza[A-Za-z0-9_-]{35}/g],
  ['access-token', 'an Anthropic key', /\bsk-ant-[A-Za-z0-9_-]{24}/g],
  ['access-token', 'an OpenAI key', /\bsk-(?:proj-|svcacct-)?[A-Za-z0-9_-]{40}/g],
  ['access-token', 'a Stripe key', /\b[rs]k_live_[A-Za-z0-9]{24}/g],
  ['access-token', 'a SendGrid key', /\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}/g],
  ['access-token', 'a Hugging Face token', /\bhf_[A-Za-z0-9]{34}/g],
  ['access-token', 'an age secret key', /\bAGE-SECRET-KEY-1[A-Z0-9]{58}/g],
  [
    'password-in-url',
    'a URL with a password',
    /\b[a-z][a-z0-9+.-]{2,12}:\/\/[^\s:/@'"<>]{1,64}:[^\s:/@'"<>${}]{3,128}@[a-z0-9]/g,
  ],
]

export function scanSecrets(text: string): ContentFinding[] {
  return SECRETS.flatMap(([rule, what, pattern]) =>
    [...text.matchAll(pattern)]
      .filter(({ 0: found }) => !isPlaceholder(found))
      .map(({ index }) => ({ rule, message: `line ${lineOf(text, index)}: looks like ${what}` })),
  )
}

/** Documentation shows tokens; what is plainly made up is not a secret. */
const isPlaceholder = (found: string): boolean =>
  /example|x{6}|\*{4}|0{12}|1234567890|your[-_]|placeholder|:(?:password|pass|secret|changeme)@/i.test(found)

const DIRECTION = /[\u202a-\u202e\u2066-\u2069\u061c\u200e\u200f]/
const INVISIBLE = /[\u00ad\u180e\u200b\u2060-\u2064\u{e0000}-\u{e007f}]/u
const ESCAPE = /[\x1b\x9b\x00-\x08\x0e-\x1a\x7f]/
const DOCUMENTS = /\.(?:md|mdx|rst|adoc|txt|html?)$/
const GENERATED = /(?:\.(?:lock|map|svg|json|csv|sum|snap|ipynb)|-lock\.(?:json|yaml)|\.min\.(?:js|css))$/

/** What makes a text look like something else than it is, line by line. */
export function scanText(name: string, text: string): ContentFinding[] {
  const found: ContentFinding[] = []
  const report = (rule: string, what: string, line: number): void => {
    found.push({ rule, message: `line ${line}: ${what}` })
  }
  let line = 0
  for (const words of text.split('\n')) {
    line++
    if (words.length > 5_000 && !GENERATED.test(name))
      report('long-line', `a line of ${words.length} characters`, line)
    if (/^[\t -~]*$/.test(words)) {
      if (
        !DOCUMENTS.test(name) &&
        /\b(?:curl|wget)\b[^|]{0,300}\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b/.test(words)
      )
        report('pipe-to-shell', 'a download is piped into a shell', line)
      continue
    }
    if (DIRECTION.test(words))
      report('direction-control', 'characters that change the direction of text', line)
    if (INVISIBLE.test(words)) report('invisible-text', 'characters that are not visible', line)
    if (ESCAPE.test(words)) report('terminal-escape', 'control characters that a terminal obeys', line)
    // A carriage return in the middle of a line overwrites what a terminal has shown of it.
    if (/\r(?!$)/.test(words)) report('terminal-escape', 'a carriage return within the line', line)
    if (found.length > 200) break
  }
  return found
}
