import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { blame } from './audit/blame.ts'
import type { KeptHead, Verification } from './audit/check.ts'
import { EXPORT_FORMATS, exportLine } from './audit/export.ts'
import { keyOf } from './audit/key-file.ts'
import {
  type ConsistencyProof,
  type InclusionProof,
  proveConsistency,
  proveInclusion,
} from './audit/prove.ts'
import type { Provenance } from './audit/provenance.ts'
import { type AuditRecord, branchOf, decodeRecord } from './audit/record.ts'
import { segmentName } from './audit/segment-name.ts'
import { linesOf, listSegments } from './audit/segments.ts'
import { loadPublicKey } from './audit/signer.ts'
import { verifyLog } from './audit/verify.ts'
import { errnoOf, PuzzledError } from './lib/errors.ts'
import { stateDirectory } from './lib/read-config.ts'

export type { Provenance, ToldProvenance } from './audit/provenance.ts'

/** The audit log for reading only: beside a running daemon, and where the store cannot be opened any more. */
export interface AuditReader {
  /** With the key of that file, or the one that lies beside the log; and that it grew from what somebody kept of it. */
  verify(keyFile: string | null, kept: KeptHead | null): Promise<Verification>
  prove(record: number, size?: number): Promise<InclusionProof>
  /** That the first `size` records are the beginning of the log as it is now. */
  proveGrowth(size: number): Promise<ConsistencyProof>
  export(format: string, version: string): AsyncIterable<string>
  /** Everything on record about one branch or commit; a prefix is enough. */
  trace(branch: string): AsyncIterable<AuditRecord>
  /** The last commits that touched a path or what is below it, newest first. */
  blame(path: string, most: number): Promise<Provenance[]>
  /** PEM. */
  publicKey(): Promise<string>
}

/** Of that store, or of the one of this machine. */
export async function openAudit(stateDir: string | null): Promise<AuditReader> {
  return auditOf(await stateDirectory(stateDir))
}

export function auditOf(state: string): AuditReader {
  const directory = join(state, 'audit')
  const readable = <Result>(work: Promise<Result>): Promise<Result> =>
    work.catch((error: unknown) => Promise.reject(unreadable(directory, error)))
  return {
    verify: async (keyFile, kept) => {
      const key = await (keyFile === null ? readable(loadPublicKey(directory)) : keyOf(keyFile))
      return readable(verifyLog(directory, key, kept))
    },
    prove: (record, size) => readable(proveInclusion(directory, record, size)),
    proveGrowth: (size) => readable(proveConsistency(directory, size)),
    export: (format, version) => exported(directory, format, version),
    trace: (branch) => traced(directory, branch),
    blame: (path, most) => readable(blame(directory, path, most)),
    publicKey: () => readable(readFile(join(directory, 'audit.pub'), 'utf8')),
  }
}

async function* exported(directory: string, format: string, version: string): AsyncGenerator<string> {
  const known = EXPORT_FORMATS.find((name) => name === format)
  if (known === undefined)
    throw new PuzzledError('usage', `--format ${format} is not known`, {
      hint: `Use ${EXPORT_FORMATS.join(', ')}.`,
    })
  for await (const lines of wholeLines(directory))
    yield lines.map((line) => `${exportLine(line, known, version)}\n`).join('')
}

/** By id, by commit, or by the name that a branch was given; of several with one name, all of them. */
async function* traced(directory: string, asked: string): AsyncGenerator<AuditRecord> {
  const named = new Set<string>()
  let found = false
  for await (const lines of wholeLines(directory))
    for (const line of lines) {
      // Most lines are about something else, and parsing is what costs.
      if (!line.includes(asked) && !named.has(branchOf(line))) continue
      const record = decodeRecord(line)
      if (record === null) continue
      if (record.kind === 'fork' && record.facts.name === asked) named.add(record.branch)
      const about = [record.branch, record.facts.commit, record.facts.by]
      const isAbout = about.some((id) => typeof id === 'string' && id.startsWith(asked))
      if (!isAbout && !named.has(record.branch)) continue
      found = true
      yield record
    }
  if (!found)
    throw new PuzzledError('branch-unknown', `Nothing is on record about "${asked}"`, {
      hint: 'puzzlectl ls --all lists the branches.',
    })
}

/** A last line that is still being written is left out; anywhere else one without an end is damage, and not passed over. */
async function* wholeLines(directory: string): AsyncGenerator<Buffer[]> {
  try {
    const segments = await listSegments(directory)
    for (const segment of segments)
      for await (const lines of linesOf(directory, segment)) {
        const cut = lines.find(({ whole }) => !whole)
        if (cut !== undefined && (cut.endless === true || segment !== segments.at(-1)))
          throw damaged(`byte ${cut.offset} of ${segmentName(segment)}`)
        yield lines.filter(({ whole }) => whole).map(({ bytes }) => bytes)
      }
  } catch (error) {
    throw unreadable(directory, error)
  }
}

const damaged = (place: string): PuzzledError =>
  new PuzzledError('audit-failed', `The audit log is damaged at ${place}`, {
    hint: 'Look: puzzlectl audit verify.',
  })

function unreadable(directory: string, cause: unknown): unknown {
  const errno = errnoOf(cause)
  if (errno === 'ENOENT')
    return new PuzzledError('state-unreadable', `There is no audit log in "${directory}"`, {
      hint: 'Name the store with --state-dir.',
    })
  if (errno !== 'EACCES') return cause
  return new PuzzledError('access-denied', `Only root can read the audit log in "${directory}"`)
}
