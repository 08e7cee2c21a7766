import { ERRORS } from '../../daemon/contract/errors.ts'

const rows = Object.entries(ERRORS).map(
  ([code, { exit, bus, summary }]) =>
    `| \`${code}\` | ${exit} | ${bus === null ? '–' : `\`org.puzzled1.Error.${bus}\``} | ${summary} |`,
)
const text = `# Errors

Generated from \`daemon/contract/errors.ts\`. \`puzzlectl run\` leaves with the agent's own status when the agent ran to its
end and the outcome was as asked; with 128+n when a signal ended it; and with a status of this table otherwise. What has no
D-Bus error is found by \`puzzlectl\` itself, or is an outcome that the daemon answers with, not an error.

| code | exit status | D-Bus error | when |
|---|--:|---|---|
${rows.join('\n')}
`
console.log(JSON.stringify({ 'docs/errors.md': text }))
