import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { compileFilter } from '../../daemon/kernel/seccomp.ts'
import { allSources } from '../../daemon/sandbox/seccomp-rules.ts'

/**
 * The seccomp programs for x86-64, compiled by libseccomp. The file carries a digest of the policy: while it matches,
 * it is fresh whatever version of libseccomp is here. That the bytes do what the policy says is checked by
 * interpreting them (daemon/sandbox/seccomp-compiled.test.ts).
 */
const OUT = 'daemon/sandbox/seccomp-compiled.ts'
const sources = allSources('x64')
const digest = createHash('sha256').update(JSON.stringify(sources)).digest('hex').slice(0, 32)
const HEAD = `// pure\n// Generated from the seccomp policy (${digest}); do not edit.\n`

const committed = existsSync(OUT) ? readFileSync(OUT, 'utf8') : ''

function generate(): string {
  const entries = sources.map((source) => {
    const bytes = Buffer.from(compileFilter(source))
    return `  // biome-ignore format: data\n  '${source.name}':\n    '${bytes.toString('base64')}',`
  })
  return `${HEAD}
/** \`struct sock_filter[]\` in base64 by the name of its source. */
export const COMPILED_X64: Readonly<Record<string, string>> = {
${entries.join('\n')}
}
`
}

console.log(JSON.stringify({ [OUT]: committed.startsWith(HEAD) ? committed : generate() }))
