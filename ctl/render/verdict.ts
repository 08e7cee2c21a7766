// pure
import type { Finding, Verdict } from '../../daemon/contract/verdict.ts'
import type { Paint } from './paint.ts'
import { visibleLine } from './visible.ts'

/** A verdict with its findings, the worst first. */
export function verdictText(verdict: Verdict, paint: Paint): string {
  const { red, yellow, green, dim } = paint
  const colour = { allow: green, hold: yellow, deny: red }[verdict.kind]
  const list = (title: string, findings: readonly Finding[], mark: (text: string) => string): string[] =>
    findings.map(
      ({ rule, severity, message, path }) =>
        `  ${mark(title)} ${rule} (${severity}) ${path === undefined ? '' : `${visibleLine(path)}: `}${visibleLine(message)}`,
    )
  const lines = [
    `${colour(verdict.kind)} (${verdict.tier}) in ${verdict.durationMs.toFixed(1)} ms${verdict.shadow ? ', in shadow: not enforced' : ''}`,
    ...list('deny', verdict.deny, red),
    ...list('hold', verdict.hold, yellow),
    ...list('warn', verdict.warn, dim),
    ...verdict.obligations.map((each) => `  asks for ${visibleLine(each)}`),
    dim(`  by ${verdict.policies.map(({ name, sha256 }) => `${name}@${sha256.slice(0, 12)}`).join(' ')}`),
  ]
  return `${lines.join('\n')}\n`
}
