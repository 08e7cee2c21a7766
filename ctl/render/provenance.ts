// pure
import type { ToldProvenance } from '../../daemon/inspect-audit.ts'
import type { Paint } from './paint.ts'
import { visibleLine } from './visible.ts'

/** Paths per commit that a person reads; all of them are in the JSON. */
const MOST_PATHS = 10

export const provenanceText = (all: readonly ToldProvenance[], paint: Paint): string =>
  all.map((one) => commitText(one, paint)).join('\n')

function commitText(one: ToldProvenance, paint: Paint): string {
  const lines: string[] = []
  const add = (name: string, value: string): void =>
    void lines.push(`${paint.dim(name.padStart(10))}  ${value}`)
  const state =
    one.state === 'landed'
      ? ''
      : ` ${paint.yellow(one.state === 'reverted' ? '(reverted)' : '(not on record as done)')}`
  const title = one.withheld === true ? 'a commit of somebody else' : one.commit
  lines.push(`${paint.bold(title)}  ${one.time}${state}`)
  for (const { path, kind, sha256 } of one.entries.slice(0, MOST_PATHS))
    add(
      kind,
      `${visibleLine(path)}${sha256 === undefined ? '' : paint.dim(`  sha256 ${sha256.slice(0, 12)}`)}`,
    )
  const more = one.entries.length - MOST_PATHS + (one.more ?? 0)
  if (more > 0) add('', `and ${more} more below it`)
  if (one.withheld === true) return `${lines.join('\n')}\n`
  add('branch', `${one.branch}${one.name === null ? '' : ` (${visibleLine(one.name)})`}`)
  add('command', visibleLine(one.command.join(' ')))
  if (one.exit !== null) add('exit', exitText(one.exit))
  if (one.requester !== null) add('for', `uid ${one.requester}`)
  if (one.profile !== null)
    add('profile', `${visibleLine(one.profile)} (sha256 ${(one.profileSha256 ?? '').slice(0, 12)})`)
  const policies = one.policies.map(({ name, sha256 }) => `${visibleLine(name)}@${sha256.slice(0, 12)}`)
  if (one.verdict !== null) add('verdict', `${one.verdict} by ${policies.join(', ') || 'no policy'}`)
  for (const { by, why, time } of one.approvals)
    add('approved', `by uid ${by}, ${time}${why === '' ? '' : `: ${visibleLine(why)}`}`)
  if (one.requests.length > 0) add('requests', one.requests.map((id) => visibleLine(id)).join(' '))
  add('digest', one.digest)
  add('record', `${one.seq}: puzzlectl audit prove ${one.seq}`)
  return `${lines.join('\n')}\n`
}

const exitText = ({ code, signal, cause }: NonNullable<ToldProvenance['exit']>): string =>
  `${signal === null ? `status ${code ?? '?'}` : `signal ${signal}`}${cause === 'exited' ? '' : ` (${cause})`}`
