import { decodePath, encodePath, type PathText } from '../../contract/bytes.ts'
import type { BaseIdentity, Change, NodeState } from '../../contract/changeset.ts'
import type { Dir, Disk } from '../../lib/disk.ts'
import { changesName } from '../staging-area.ts'

const CHUNK = 256 * 1024

/** What landed, path by path: the reverse changeset is made from it. Durable before INTENT. */
export function writeChanges(
  disk: Disk,
  journal: Dir,
  commit: string,
  changes: readonly Change[],
  stripped: ReadonlyMap<Change, NodeState>,
): void {
  const name = changesName(commit)
  let lines: string[] = []
  let size = 0
  let end = 0
  const flush = (): void => {
    const bytes = Buffer.from(lines.join(''), 'utf8')
    disk.writeAt(journal, name, end, bytes)
    end += bytes.length
    lines = []
    size = 0
  }
  for (const change of changes) {
    const landed = stripped.get(change)
    const line = `${JSON.stringify(encodeChange(landed === undefined ? change : { ...change, new: landed }))}\n`
    lines.push(line)
    size += line.length
    if (size >= CHUNK) flush()
  }
  flush()
  disk.fsync(journal, name)
}

export const readChanges = (disk: Disk, journal: Dir, commit: string): Change[] =>
  disk
    .readFile(journal, changesName(commit))
    .toString('utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => decodeChange(JSON.parse(line) as ChangeText))

interface StateText {
  type: NodeState['type']
  mode: number
  uid: number
  gid: number
  size: number
  mtime: string
  sha256?: string
  link?: string
  xattrs?: readonly [name: string, value: string][]
}

interface ChangeText extends PathText {
  base: number
  kind: Change['kind']
  old?: StateText
  new?: StateText
  hardlink?: number
  identity?: Omit<BaseIdentity, 'mtimeNs' | 'ctimeNs'> & { mtime: string; ctime: string }
}

export function encodeChange(change: Change): ChangeText {
  const { base, path, kind, old, new: state, hardlink, identity } = change
  return {
    ...encodePath(path),
    base,
    kind,
    ...(old === null ? {} : { old: encodeState(old) }),
    ...(state === null ? {} : { new: encodeState(state) }),
    ...(hardlink === undefined ? {} : { hardlink }),
    ...(identity === undefined ? {} : { identity: encodeIdentity(identity) }),
  }
}

function encodeState({ mtimeNs, link, xattrs, ...rest }: NodeState): StateText {
  return {
    ...rest,
    mtime: String(mtimeNs),
    ...(link === undefined ? {} : { link: Buffer.from(link).toString('base64') }),
    ...(xattrs.length === 0
      ? {}
      : {
          xattrs: xattrs.map(({ name, value }): [string, string] => [
            name,
            Buffer.from(value).toString('base64'),
          ]),
        }),
  }
}

const encodeIdentity = ({
  mtimeNs,
  ctimeNs,
  ...rest
}: BaseIdentity): NonNullable<ChangeText['identity']> => ({
  ...rest,
  mtime: String(mtimeNs),
  ctime: String(ctimeNs),
})

export function decodeChange(text: ChangeText): Change {
  const { base, kind, old, new: state, hardlink, identity } = text
  return {
    base,
    path: decodePath(text),
    kind,
    old: old === undefined ? null : decodeState(old),
    new: state === undefined ? null : decodeState(state),
    findings: [],
    ...(hardlink === undefined ? {} : { hardlink }),
    ...(identity === undefined ? {} : { identity: decodeIdentity(identity) }),
  }
}

function decodeState({ mtime, link, xattrs, ...rest }: StateText): NodeState {
  return {
    ...rest,
    mtimeNs: BigInt(mtime),
    ...(link === undefined ? {} : { link: Buffer.from(link, 'base64') }),
    xattrs: (xattrs ?? []).map(([name, value]) => ({ name, value: Buffer.from(value, 'base64') })),
  }
}

function decodeIdentity({ mtime, ctime, ...rest }: NonNullable<ChangeText['identity']>): BaseIdentity {
  return { ...rest, mtimeNs: BigInt(mtime), ctimeNs: BigInt(ctime) }
}
