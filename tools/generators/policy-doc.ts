import { readFileSync } from 'node:fs'
import type { z } from 'zod'
import { gateInputSchema } from '../../daemon/policy/gate-schema.ts'
import { RULES } from '../../daemon/policy/rules.ts'
import { decisionSchema } from '../../daemon/policy/verdict.ts'
import { fieldsOf } from '../schema-fields.ts'

/** The parts of docs/policy.md that must agree with the code: fields, rules, catalogue. */

const table = (schema: z.ZodType): string =>
  [
    '| field | type | meaning |',
    '|---|---|---|',
    ...fieldsOf(schema).map(
      ({ name, optional, type, about }) =>
        `| \`${name}\`${optional ? ' (optional)' : ''} | ${type.replaceAll('|', '\\|')} | ${about} |`,
    ),
  ].join('\n')

const catalogue: Record<string, Record<string, string | string[]>> = JSON.parse(
  readFileSync(
    new URL('../../policies/dist/vectors.json', `file://${process.cwd()}/tools/generators/x`),
    'utf8',
  ),
)
const WEIGHTS: Record<string, string> = { critical: 'deny', high: 'hold', medium: 'hold', low: 'warn' }
const vectorRow = ([id, { severity, why, clean, content, only, segments, except, ...places }]: [
  string,
  Record<string, string | string[]>,
]) => {
  const where = Object.values(places)
    .flat()
    .map((place) => `\`${place}\``)
  const shown = where.length > 6 ? [...where.slice(0, 6), `and ${where.length - 6} more`] : where
  const limits = [
    only && `only ${[only].flat().join(' ')}`,
    segments && `below ${[segments].flat().join(' … ')}`,
    except && `not *.${[except].flat().join(' ')}`,
    content && `${WEIGHTS[String(clean)]} when the content is harmless`,
  ]
  const more = limits.filter((each) => typeof each === 'string').map((each) => ` (${each})`)
  return `| \`${id}\` | ${WEIGHTS[String(severity)]} | ${shown.join(' ')}${more.join('')} | ${why} |`
}

const text = `# The policy

Generated from \`daemon/policy\` and \`policies/\`. Guarantees and limits first, then the two documents that a policy reads and writes.

* Nothing is committed before every policy has answered. A policy that is missing, broken, late (30 s), greedy (512 MiB) or that answers
  anything but one well-formed decision denies: \`policy-failed\`.
* Several policies are one: any \`deny\` denies, any \`hold\` holds. A policy can only make the verdict stricter.
* \`deny\` cannot be approved away; \`hold\` is for a person, whose approval is bound to the digest and to the version of all policies.
* The final tree is judged, by absolute targets in folded form (lower case, NFKC, without invisible characters). A path through a
  symlink of the same changeset counts as well. A symlink that the base had before is not followed: the write below it is judged where it lands.
* Contents are examined up to 1 MiB per file and 64 MiB per changeset; what was not examined is said in a finding.
* More than 200,000 changes are denied without being judged.

## Own policies

Rego v1, one rule that gives the decision, compiled and tried out by \`puzzlectl policy build house.rego -e house/decision -o house.wasm\`.
\`/etc/puzzled/policies/*.wasm\` judge every changeset; a profile can demand one by name (\`gate.policies\`). Try it with
\`puzzlectl policy eval --changeset FILE --policy house.wasm\`, and on the past with \`puzzlectl policy replay --policy house.wasm\`.
Only the functions of OPA's WebAssembly runtime are there; there is no clock but \`input.now\`, no network and no file.

\`\`\`rego
package house

import rego.v1

decision := {
	"version": 1, "allow": count(held) == 0, "deny": [], "hold": [f | some f in held], "warn": [],
	"tier": tier, "obligations": obligations,
}

held contains {"rule": "house/migration", "severity": "high", "message": "a migration", "path": input.changes[i].target} if {
	some d in input.index.segments.migrations
	some i in input.index.directories[d].changes
}

tier := "approval_required" if count(held) > 0 else := "auto"

# Two people, none of them the one who started the branch, within a day.
obligations := ["quorum:2", "other-reviewer", "expires:86400"] if count(held) > 0 else := []
\`\`\`

## The decision

JSON Schema: \`policies/schema/decision.schema.json\`. \`allow\` is true exactly when \`deny\` and \`hold\` are empty.

${table(decisionSchema)}

## The input document

JSON Schema: \`policies/schema/gate-input.schema.json\`.

${table(gateInputSchema)}

## Rules

| rule | weight | means |
|---|---|---|
${Object.entries(RULES)
  .map(([rule, { weight, means }]) => `| \`${rule}\` | ${weight} | ${means} |`)
  .join('\n')}

## The catalogue of execution and persistence vectors

${Object.keys(catalogue).length} entries, each the rule \`vector/ID\`; created, changed, renamed into place or linked.

| id | weight | where | why |
|---|---|---|---|
${Object.entries(catalogue).map(vectorRow).join('\n')}
`
console.log(JSON.stringify({ 'docs/policy.md': text }))
