// pure
import { Buffer } from 'node:buffer'
import { decodePath, encodePath, type PathText } from '../contract/bytes.ts'
import type { BaseIdentity, Change, Changeset, NodeState } from '../contract/changeset.ts'
import { digestOf } from './changeset.ts'

/** A changeset for `--json` and for records: names as `encodePath` writes them, times as decimal strings. */
export interface ChangesetJson extends Omit<Changeset, 'changes'> {
  changes: ChangeJson[]
}

interface ChangeJson extends PathText, Pick<Change, 'base' | 'kind' | 'hardlink' | 'findings'> {
  old: StateJson | null
  new: StateJson | null
  identity?: Omit<BaseIdentity, 'mtimeNs' | 'ctimeNs'> & { mtimeNs: string; ctimeNs: string }
}

interface StateJson extends Pick<NodeState, 'type' | 'mode' | 'uid' | 'gid' | 'size' | 'sha256'> {
  mtimeNs: string
  link?: PathText
  /** Values in base64. */
  xattrs?: readonly { name: string; value: string }[]
}

export const changesetToJson = (changeset: Changeset): ChangesetJson => ({
  ...changeset,
  changes: changeset.changes.map(changeToJson),
})

/** Throws when the digest does not belong to the rest: a record that was damaged is never acted on. */
export function changesetFromJson(json: ChangesetJson): Changeset {
  const changeset = { ...json, changes: json.changes.map(changeFromJson) }
  if (digestOf(changeset) !== json.digest)
    throw new RangeError('The digest of the changeset does not match it')
  return changeset
}

function changeToJson({ path, old, new: fresh, identity, ...rest }: Change): ChangeJson {
  const json: ChangeJson = { ...rest, ...encodePath(path), old: stateToJson(old), new: stateToJson(fresh) }
  if (identity !== undefined)
    json.identity = {
      ...identity,
      mtimeNs: identity.mtimeNs.toString(),
      ctimeNs: identity.ctimeNs.toString(),
    }
  return json
}

function changeFromJson({ path, path64, old, new: fresh, identity, ...rest }: ChangeJson): Change {
  const change: Change = {
    ...rest,
    path: decodePath(path64 === undefined ? { path } : { path, path64 }),
    old: stateFromJson(old),
    new: stateFromJson(fresh),
  }
  if (identity !== undefined)
    change.identity = { ...identity, mtimeNs: BigInt(identity.mtimeNs), ctimeNs: BigInt(identity.ctimeNs) }
  return change
}

function stateToJson(state: NodeState | null): StateJson | null {
  if (state === null) return null
  const { link, xattrs, mtimeNs, ...rest } = state
  const json: StateJson = { ...rest, mtimeNs: mtimeNs.toString() }
  if (link !== undefined) json.link = encodePath(link)
  if (xattrs.length > 0)
    json.xattrs = xattrs.map(({ name, value }) => ({ name, value: Buffer.from(value).toString('base64') }))
  return json
}

function stateFromJson(json: StateJson | null): NodeState | null {
  if (json === null) return null
  const { link, xattrs, mtimeNs, ...rest } = json
  const state: NodeState = {
    ...rest,
    mtimeNs: BigInt(mtimeNs),
    xattrs: (xattrs ?? []).map(({ name, value }) => ({ name, value: Buffer.from(value, 'base64') })),
  }
  if (link !== undefined) state.link = decodePath(link)
  return state
}
