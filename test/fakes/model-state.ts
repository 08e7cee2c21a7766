import type { DiskXattr, FileKind } from '../../daemon/lib/disk.ts'

export interface ModelNode {
  ino: number
  fs: number
  kind: FileKind
  mode: number
  uid: number
  gid: number
  mtimeNs: bigint
  ctimeNs: bigint
  xattrs: readonly DiskXattr[]
  data: Buffer
  link: Buffer
  entries: Map<string, number>
}

export type ModelState = Map<number, ModelNode>

/** One change that a real disk can keep or lose by itself. A rename is one: journaled filesystems do it at once. */
export type ModelOp = { fs: number; created: ModelNode | null } & (
  | { kind: 'entries'; assign: readonly [dir: number, name: string, ino: number | null][] }
  | {
      kind: 'meta'
      ino: number
      meta: Partial<Pick<ModelNode, 'mode' | 'uid' | 'gid' | 'mtimeNs' | 'xattrs'>>
    }
  | { kind: 'data'; ino: number; offset: number; bytes: Buffer }
)

/** What became of an unsynced change when the power went. `torn` keeps half of the bytes. */
export type Fate = 'kept' | 'lost' | 'torn'

export const cloneState = (state: ModelState): ModelState =>
  new Map([...state].map(([ino, node]) => [ino, cloneNode(node)]))

export const cloneNode = (node: ModelNode): ModelNode => ({ ...node, entries: new Map(node.entries) })

export function applyOp(state: ModelState, op: ModelOp, fate: Fate = 'kept'): void {
  if (fate === 'lost') return
  if (op.created !== null && !state.has(op.created.ino)) state.set(op.created.ino, cloneNode(op.created))
  if (op.kind === 'entries') {
    for (const [dir, name, ino] of op.assign) {
      const entries = state.get(dir)?.entries
      if (ino === null) entries?.delete(name)
      else entries?.set(name, ino)
    }
    return
  }
  const node = state.get(op.ino)
  if (node === undefined) return
  if (op.kind === 'meta') Object.assign(node, op.meta)
  else {
    const bytes = fate === 'torn' ? op.bytes.subarray(0, Math.floor(op.bytes.length / 2)) : op.bytes
    const grown = Buffer.alloc(Math.max(node.data.length, op.offset + op.bytes.length))
    node.data.copy(grown)
    bytes.copy(grown, op.offset)
    node.data = grown
  }
}

/** The tree below a directory as text: what a person would compare. Times and inode numbers are left out on request. */
export function dump(state: ModelState, ino: number, prefix = ''): string[] {
  const node = state.get(ino)
  if (node === undefined) return [`${prefix} MISSING`]
  const attributes = node.xattrs.map(({ name, value }) => `${name}=${Buffer.from(value).toString('hex')}`)
  const own = `${prefix || '/'} ${node.kind} ${node.mode.toString(8)} ${node.uid}:${node.gid} ${node.mtimeNs} ${[
    ...attributes,
    node.link.toString('latin1'),
    node.data.toString('latin1'),
  ].join(' ')}`
  const below = [...node.entries].sort(([a], [b]) => (a < b ? -1 : 1))
  return [own, ...below.flatMap(([name, child]) => dump(state, child, `${prefix}/${name}`))]
}
