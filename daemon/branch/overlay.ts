import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BaseRecord, BranchRecord, ClockMark, Grant, Requester } from '../contract/branch.ts'
import type { NodeState } from '../contract/changeset.ts'
import type { Profile } from '../contract/profile.ts'
import { readClock } from '../kernel/clock.ts'
import { fstatfs } from '../kernel/file-data.ts'
import { fchmod, fchown, futimens, openRoot, withFd } from '../kernel/paths.ts'
import { statFd } from '../kernel/statx.ts'
import { getXattr, listXattrs, setXattr } from '../kernel/xattr.ts'
import { PuzzledError } from '../lib/errors.ts'
import { Reader, readState, Writer, writeState } from './changeset-codec.ts'
import { readBaseXattrs, stateOf } from './diff-node.ts'
import { identified, resolveBases, verifyBase } from './overlay-bases.ts'
import { limitSpace } from './overlay-space.ts'

/** Filesystems that overlayfs accepts as an upper: whiteouts, `trusted.*` attributes and d_type. */
const UPPER_TYPES = new Set(['ext4', 'xfs', 'btrfs', 'tmpfs', 'f2fs', 'bcachefs'])

/** What is mounted over one base: lower directories, topmost first and the base last, and the writable layer. */
export interface LayerMount {
  base: string
  lowers: readonly string[]
  upper: string
  work: string
}

export interface LayerStore {
  /** The branch's directory in the store. */
  directory(id: string): string
}

/**
 * `branches/<id>/layers/NNN/<base>/{upper,work}`: layer 001 is made at the fork, each further one is put on top, the last is
 * writable. Nothing here looks into a base beyond its root directory.
 */
export class OverlayLayers {
  readonly #store: LayerStore
  readonly #root: string

  /** `root` is the store's own directory: no base may overlap it. */
  constructor(store: LayerStore, root: string) {
    this.#store = store
    this.#root = root
  }

  async prepare(
    id: string,
    bases: readonly string[],
    profile: Profile,
    requester: Requester,
  ): Promise<{ bases: readonly BaseRecord[]; grants: readonly Grant[]; clock: ClockMark }> {
    const records = resolveBases(bases, this.#root, requester).map(identified)
    const layers = join(this.#store.directory(id), 'layers')
    mkdirSync(layers, { mode: 0o700, recursive: true })
    chmodSync(layers, 0o700)
    const grants = [...withFd(openRoot(layers), checkUpper), ...(await limitSpace(layers, id, profile))]
    for (const [index, base] of records.entries()) makeLayer(layers, 1, index, base.path)
    return { bases: records, grants, clock: readClock() }
  }

  async mounts(record: BranchRecord): Promise<readonly LayerMount[]> {
    for (const base of record.bases) verifyBase(base)
    return layerMounts(record, this.#store.directory(record.id))
  }

  /** The top layer is frozen under a new one. No verb does it now (docs/decisions/signals.md); reading such a stack is tested. */
  async push(record: BranchRecord): Promise<number> {
    const layers = join(this.#store.directory(record.id), 'layers')
    const next = record.layers + 1
    for (const [index] of record.bases.entries())
      makeLayer(layers, next, index, upperOf(layers, record.layers, index))
    return next
  }
}

const layerName = (layer: number): string => String(layer).padStart(3, '0')

/** Below the directory of a branch's layers. */
export const upperOf = (layers: string, layer: number, index: number): string =>
  join(layers, layerName(layer), String(index), 'upper')

/** Where each base's layers are; pure arithmetic on names, used for mounting and for the diff alike. */
export function layerMounts(record: BranchRecord, directory: string): LayerMount[] {
  return record.bases.map((base, index) => {
    const at = (layer: number, part: string): string =>
      join(directory, 'layers', layerName(layer), String(index), part)
    const frozen = Array.from({ length: record.layers - 1 }, (_, below) =>
      at(record.layers - 1 - below, 'upper'),
    )
    return {
      base: base.path,
      lowers: [...frozen, base.path],
      upper: at(record.layers, 'upper'),
      work: at(record.layers, 'work'),
    }
  })
}

function checkUpper(fd: number): Grant[] {
  const facts = fstatfs(fd)
  if (!UPPER_TYPES.has(facts.type))
    throw new PuzzledError(
      'state-unsuitable',
      `The store is on ${facts.type}, which cannot hold branch layers`,
      {
        hint: `Move it to one of ${[...UPPER_TYPES].join(', ')} with --state-dir.`,
        data: { filesystem: facts.type },
      },
    )
  const granted = [facts.nosuid ? 'nosuid' : '', facts.nodev ? 'nodev' : ''].filter(Boolean).join(',')
  return [
    {
      what: 'mount of the layers',
      requested: 'nosuid,nodev',
      granted: granted === '' ? 'neither; only the agent’s own mount is' : granted,
      full: facts.nosuid && facts.nodev,
    },
  ]
}

/**
 * The agent sees the upper's root as the base's root, so it must look like it: owner, mode, ACLs and times. They are set
 * last, after everything that changes them.
 */
function makeLayer(layers: string, layer: number, index: number, like: string): void {
  const directory = join(layers, layerName(layer), String(index))
  mkdirSync(join(directory, 'work'), { mode: 0o700, recursive: true })
  mkdirSync(join(directory, 'upper'), { mode: 0o700 })
  if (layer === 1) recordRoot(directory, like)
  withFd(openRoot(like), (from) => withFd(openRoot(join(directory, 'upper')), (to) => copyRoot(from, to)))
}

function copyRoot(from: number, to: number): void {
  const stat = statFd(from)
  fchown(to, stat.uid, stat.gid)
  for (const name of listXattrs(from)) {
    if (!isCarried(name)) continue
    const value = getXattr(from, name)
    if (value !== undefined) setXattr(to, name, value)
  }
  fchmod(to, stat.mode & 0o7777)
  futimens(to, stat.mtimeNs)
}

/** What the base's root was at the fork: a diff must not take a later change of somebody else for the agent's. */
function recordRoot(directory: string, base: string): void {
  const root = withFd(openRoot(base), (fd) => stateOf(statFd(fd), readBaseXattrs(fd)))
  const bytes = new Writer()
  writeState(bytes, root, false)
  writeFileSync(join(directory, 'root'), bytes.take(), { mode: 0o600 })
}

/** The record that the fork left beside the first layer. */
export function forkedRoot(directory: string, index: number): NodeState {
  const file = join(directory, 'layers', layerName(1), String(index), 'root')
  const state = readState(new Reader(readFileSync(file)))
  if (state === null)
    throw new PuzzledError('record-damaged', `The record of a base's root is damaged: ${file}`)
  return state
}

/** Overlay's own marks must not be copied and labels are the host's business. */
const isCarried = (name: string): boolean => /^(user|system\.posix_acl)/.test(name)
