// pure
import { isAscii } from 'node:buffer'
import { posix } from 'node:path'
import type { BranchRecord } from '../contract/branch.ts'
import { encodePath, type PathText } from '../contract/bytes.ts'
import type { Change, Changeset } from '../contract/changeset.ts'
import {
  isExecutable,
  isSystemPath,
  type LinkTarget,
  linkTarget,
  stateFlags,
  stateText,
} from './change-facts.ts'
import { ChangeIndexBuilder } from './change-index.ts'
import type { ContentScan } from './content-scan.ts'
import { fold, isDeceptive } from './fold.ts'
import { type Glob, globExpression } from './glob.ts'
import { TextSink } from './text-sink.ts'

/** What the gate knows besides the changeset and the record. */
export interface GateContext {
  now: Date
  /** By number of the change; a file that is absent here was not examined. `null`: contents were not available. */
  scans: ReadonlyMap<number, ContentScan> | null
  usage?: Readonly<Record<string, number>>
  history?: { tier: string | null; recent: readonly string[] }
}

/** More than this is refused without being read: nobody could review it, and it would only serve to exhaust us. */
export const MAX_CHANGES = 200_000

/**
 * Builds the gate's input document step by step, so that the caller can let other work run in between. The result is
 * JSON text: the policy engine reads text, and a text can be moved to another thread without a copy.
 */
export class GateInputBuilder {
  readonly #record: BranchRecord
  readonly #changeset: Changeset
  readonly #context: GateContext
  readonly #rows = new TextSink()
  #taken = 0
  readonly #index: ChangeIndexBuilder
  readonly #rules: {
    action: 'deny' | 'hold'
    pattern: string
    why: string
    expression: Glob
    changes: number[]
  }[]

  constructor(record: BranchRecord, changeset: Changeset, context: GateContext) {
    this.#record = record
    this.#changeset = changeset
    this.#context = context
    this.#index = new ChangeIndexBuilder(aliasesOf(changeset))
    const { denyPaths, holdPaths } = record.profile.resolved.gate
    const rule = (action: 'deny' | 'hold') => (grant: { path: string; why: string }) => ({
      action,
      pattern: grant.path,
      why: grant.why,
      expression: globExpression(fold(grant.path)),
      changes: [],
    })
    this.#rows.write('{"changes":[')
    this.#rules = [...denyPaths.map(rule('deny')), ...holdPaths.map(rule('hold'))]
  }

  /** Takes up to `count` more changes; false when all are in. */
  take(count: number): boolean {
    const { changes } = this.#changeset
    for (const end = Math.min(this.#taken + count, changes.length); this.#taken < end; this.#taken++) {
      const change = changes[this.#taken]
      if (change === undefined) continue
      if (this.#taken > 0) this.#rows.write(',')
      this.#rows.write(this.#row(this.#taken, change))
    }
    return this.#taken < changes.length
  }

  /** The document as UTF-8. */
  finish(): ArrayBuffer {
    const head = JSON.stringify(documentHead(this.#record, this.#changeset, this.#context))
    const rules = this.#rules.map(({ action, pattern, why, changes }) => ({ action, pattern, why, changes }))
    const settings = JSON.stringify({ ...settingsOf(this.#record), paths: rules })
    const index = JSON.stringify(this.#index.finish())
    this.#rows.write(`],"settings":${settings},"index":${index},${head.slice(1)}`)
    return this.#rows.finish()
  }

  #row(at: number, change: Change): string {
    const text = pathText(change.path)
    const base = this.#changeset.bases[change.base] ?? ''
    const target = base === '/' ? `/${text.path}` : `${base}/${text.path}`
    const folded = fold(target)
    const name = folded.slice(folded.lastIndexOf('/') + 1)
    const now = change.new
    const link =
      now?.type === 'symlink' && now.link !== undefined
        ? linkTarget(now.link, target, this.#changeset.bases)
        : undefined
    this.#index.add(at, folded, { exists: now !== null, link: now?.type === 'symlink' })
    for (const rule of this.#rules) if (rule.expression.test(folded)) rule.changes.push(at)
    const scan = this.#context.scans?.get(at)
    this.#flagAll(at, change, { folded, target, text, link, scan })
    const dot = name.lastIndexOf('.')
    const path64 = text.path64 === undefined ? '' : `"path64":"${text.path64}",`
    const extension = dot < 0 ? '' : `"extension":${JSON.stringify(name.slice(dot + 1))},`
    const setuid = now?.type === 'file' && (now.mode & 0o6000) !== 0
    const more = `${isExecutable(now) ? ',"executable":true' : ''}${setuid ? ',"setuid":true' : ''}`
    const found = change.findings.length === 0 ? '' : `,"findings":${JSON.stringify(change.findings)}`
    return `{"path":${JSON.stringify(text.path)},${path64}"target":${JSON.stringify(target)},"name":${JSON.stringify(name)},${extension}"base":${change.base},"kind":"${change.kind}","old":${stateText(change.old, undefined)},"new":${stateText(now, link)}${more}${found}${scanText(scan)}}`
  }

  #flagAll(
    at: number,
    change: Change,
    known: {
      folded: string
      target: string
      text: { path64?: string }
      link: LinkTarget | undefined
      scan: ContentScan | undefined
    },
  ): void {
    for (const flag of stateFlags(change, this.#record.requester)) this.#index.flag(flag, at)
    if (change.findings.length > 0) this.#index.flag('findings', at)
    if (isSystemPath(known.folded)) this.#index.flag('system', at)
    if (isDeceptive(known.target)) this.#index.flag('deceptive', at)
    if (known.text.path64 !== undefined) this.#index.flag('notText', at)
    if (known.link?.outside === true && !sameLink(change)) this.#index.flag('linkOutside', at)
    const { scan } = known
    if (scan !== undefined && scan.findings.length > 0) this.#index.flag('content', at)
    if (scan?.native === true) this.#index.flag('native', at)
    if (scan?.failed === true) this.#index.flag('unread', at)
    const fresh = change.kind !== 'metadata' || !isExecutable(change.old)
    if (isExecutable(change.new) && fresh && scan?.examined !== true) this.#index.flag('unreadExecutable', at)
  }
}

const sameLink = ({ old, new: now }: Change): boolean =>
  old?.link !== undefined && now?.link !== undefined && Buffer.compare(old.link, now.link) === 0

function scanText(scan: ContentScan | undefined): string {
  if (scan === undefined) return ''
  const examined = scan.examined
    ? ',"scanned":true'
    : `,"unscanned":${JSON.stringify(scan.reason ?? 'not examined')}`
  const content = scan.findings.length === 0 ? '' : `,"content":${JSON.stringify(scan.findings)}`
  return `${examined}${scan.binary ? ',"binary":true' : ''}${scan.native ? ',"native":true' : ''}${content}`
}

/** Almost every path is ASCII, and then there is nothing to check. */
function pathText(path: Uint8Array): PathText {
  if (!isAscii(path)) return encodePath(path)
  return { path: Buffer.from(path.buffer, path.byteOffset, path.byteLength).toString('latin1') }
}

/** Folded directory (or file) → folded links of the changeset that lead there. */
function aliasesOf({ changes, bases }: Changeset): Map<string, string[]> {
  const aliases = new Map<string, string[]>()
  for (const { new: now, base, path } of changes) {
    if (now?.type !== 'symlink' || now.link === undefined) continue
    const from = posix.join(bases[base] ?? '/', encodePath(path).path)
    const to = fold(linkTarget(now.link, from, bases).resolved)
    const list = aliases.get(to)
    if (list === undefined) aliases.set(to, [fold(from)])
    else list.push(fold(from))
  }
  return aliases
}

/** A budget of deletions also counts at the end: what an agent deletes in its last moment no meter has seen. */
function settingsOf({ profile, extensions }: BranchRecord): Record<string, unknown> {
  const { allowSetuid, maxFiles, maxBytes, onAgentFailure, ...gate } = profile.resolved.gate
  const { deletions: budget = Number.POSITIVE_INFINITY } = profile.resolved.budgets.limits
  const maxDeletions = Math.min(gate.maxDeletions, budget + (extensions.deletions ?? 0))
  return { allowSetuid, maxFiles, maxBytes, maxDeletions, onAgentFailure }
}

function documentHead(
  record: BranchRecord,
  changeset: Changeset,
  context: GateContext,
): Record<string, unknown> {
  const { exit, requester, profile } = record
  return {
    version: 1,
    digest: changeset.digest,
    branch: {
      id: record.id,
      base: changeset.bases,
      profile: profile.name,
      enforce: profile.resolved.enforce,
      requester: { uid: requester.uid, gid: requester.gid, name: requester.name },
      command: record.command,
      started: record.createdAt,
      ended: exit?.endedAt ?? null,
      exit: exit === null ? null : exitInput(exit),
    },
    totals: changeset.totals,
    requests: changeset.requests,
    contents: contentsInput(context.scans),
    usage: context.usage ?? {},
    history: context.history ?? { tier: null, recent: [] },
    now: context.now.toISOString(),
  }
}

function exitInput({ code, signal, cause, why }: NonNullable<BranchRecord['exit']>): Record<string, unknown> {
  const how = signal === null ? `exit status ${code}` : `signal ${signal}`
  const byItself = why === undefined ? how : `${how}: ${why}`
  const summary = cause === 'exited' || cause === 'signal' ? byItself : (why ?? cause)
  return { code, signal, cause, good: code === 0 && cause === 'exited', summary }
}

function contentsInput(scans: GateContext['scans']): Record<string, unknown> {
  if (scans === null) return { available: false, examined: 0, partly: 0 }
  let examined = 0
  for (const scan of scans.values()) if (scan.examined) examined++
  return { available: true, examined, partly: scans.size - examined }
}

/** The whole document at once, for tools and tests. */
export function gateInput(record: BranchRecord, changeset: Changeset, context: GateContext): ArrayBuffer {
  const builder = new GateInputBuilder(record, changeset, context)
  while (builder.take(1_000));
  return builder.finish()
}
