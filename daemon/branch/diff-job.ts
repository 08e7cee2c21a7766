import type { ChangesetTotals, NodeState } from '../contract/changeset.ts'
import { filesystemId } from '../kernel/filesystem-id.ts'
import { openTree } from '../kernel/mount.ts'
import { AT, close, O, openat2, openRoot } from '../kernel/paths.ts'
import { statFd } from '../kernel/statx.ts'
import { PuzzledError } from '../lib/errors.ts'
import { failpoint } from '../lib/failpoint.ts'
import type { Promised } from './diff-files.ts'
import { type DiffReceiver, DiffSink } from './diff-sink.ts'
import { DiffWalk } from './diff-walk.ts'
import { type FilesystemMark, filesystemMark, isSameFilesystem } from './same-filesystem.ts'
import type { SecondWalker } from './second-walker.ts'
import type { Company } from './walk-round.ts'

/** Everything a diff needs to know, as it is handed to the worker. */
export interface DiffJob {
  bases: readonly (FilesystemMark & {
    path: string
    /** Upper directories, topmost first. */
    uppers: readonly string[]
    forked: Pick<NodeState, 'mode' | 'uid' | 'gid' | 'xattrs'>
  })[]
}

export type DiffMessage =
  | { kind: 'progress'; paths: number }
  /** Encoded changes, one after the other, in canonical order; nobody writes to them any more. */
  | { kind: 'changes'; bytes: Uint8Array }
  | { kind: 'done'; totals: ChangesetTotals; digest: string }
  | { kind: 'failed'; error: { code: string; message: string; hint?: string; data?: unknown } }

/** How a failure crosses from one thread to another. */
export function failureOf(error: unknown): Extract<DiffMessage, { kind: 'failed' }> {
  if (!(error instanceof PuzzledError)) {
    const message = error instanceof Error ? error.message : String(error)
    return { kind: 'failed', error: { code: 'kernel-refused', message } }
  }
  const { code, message, hint, data } = error
  const more = { ...(hint === undefined ? {} : { hint }), ...(data === undefined ? {} : { data }) }
  return { kind: 'failed', error: { code, message, ...more } }
}

const CHUNK = 256 * 1024

/**
 * Runs the whole diff on the calling thread, and on a second one where the caller gave it one: who gave it ends it. Memory
 * is one chunk, plus the encoded changes of one base.
 */
export function runDiff(job: DiffJob, post: (message: DiffMessage) => void, second?: SecondWalker): void {
  const chunk = new Chunk(post)
  const bases = job.bases.map((base) => base.path)
  const progress = (paths: number): void => {
    post({ kind: 'progress', paths })
    failpoint('diff.thousand')
    second?.consider(paths)
  }
  const sink = new DiffSink(bases, (record) => chunk.add(record), progress, second?.counts)
  walkBases(job, sink, second === undefined ? {} : { company: second.beside(sink) })
  second?.requireWhole()
  chunk.flush()
  post({ kind: 'done', totals: sink.totals, digest: sink.digest() })
}

export interface WalkOptions {
  promised?: Promised
  company?: Company
}

/** Tells the receiver of everything that the layers would change, base by base. */
export function walkBases(job: DiffJob, receiver: DiffReceiver, more: WalkOptions = {}): void {
  for (const [index, base] of job.bases.entries()) {
    walkBase(index, base, receiver, more)
    receiver.endBase()
  }
}

function walkBase(
  index: number,
  base: DiffJob['bases'][number],
  receiver: DiffReceiver,
  { promised, company }: WalkOptions,
): void {
  // A private copy of the base's mount without what is mounted below it: exactly what the overlay's lower layer is.
  const mount = openTree(AT.FDCWD, base.path, { clone: true, recursive: false })
  const opened = [mount]
  try {
    const root = openat2(mount, '.', O.RDONLY | O.DIRECTORY)
    opened.push(root)
    if (!isSameFilesystem(base, filesystemMark(statFd(root).dev, filesystemId(root))))
      throw new PuzzledError(
        'base-invalid',
        `Base "${base.path}" is on another filesystem than at fork time`,
        {
          hint: 'Mount it again as it was, or discard the branch.',
        },
      )
    const uppers = base.uppers.map((path) => {
      const fd = openRoot(path)
      opened.push(fd)
      return fd
    })
    new DiffWalk(index, receiver, promised, company).run(uppers, root, base.forked)
  } finally {
    for (const fd of opened.reverse()) close(fd)
  }
}

/** Gathers records into messages of a size that the receiver decodes in a few milliseconds. */
class Chunk {
  readonly #post: (message: DiffMessage) => void
  #records: Buffer[] = []
  #size = 0

  constructor(post: (message: DiffMessage) => void) {
    this.#post = post
  }

  add(record: Buffer): void {
    this.#records.push(record)
    this.#size += record.length
    if (this.#size >= CHUNK) this.flush()
  }

  flush(): void {
    if (this.#size === 0) return
    // Shared between threads: what is passed on from one to the next is there once, however large it is.
    const bytes = new Uint8Array(new SharedArrayBuffer(this.#size))
    let at = 0
    for (const record of this.#records) {
      bytes.set(record, at)
      at += record.length
    }
    this.#records = []
    this.#size = 0
    this.#post({ kind: 'changes', bytes })
  }
}
