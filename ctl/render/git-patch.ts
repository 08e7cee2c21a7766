import { createHash } from 'node:crypto'
import { deflateSync } from 'node:zlib'
import type { Change, NodeState } from '../../daemon/contract/changeset.ts'
import type { ContentPair } from '../../daemon/contract/engine.ts'
import { exactDiff, hunkHeader, isBinary } from '../../daemon/lib/text-diff.ts'

/** One side as git knows it: one of three modes, and the bytes of a file or of a link's target. */
interface Blob {
  mode: '100644' | '100755' | '120000'
  bytes: Uint8Array
}

/** What one change is in a patch: its text, a character for each byte, and in words what of it git cannot carry. */
export interface GitPatch {
  text: string
  left: string | null
}

/** Does git look at the bytes of this side? */
export const hasBytes = (state: NodeState | null): boolean => state?.type === 'file'

/** `content` is what the engine has of it: whole, or `left` says why there is no patch. `path` has no slash in front. */
export function gitPatch(path: Uint8Array, change: Change, content: ContentPair | null): GitPatch {
  const name = latin1(path)
  if (name.split('/').some((part) => part.toLowerCase() === '.git'))
    return without('it lies in a .git, which git apply refuses')
  if (change.findings.length > 0) return without(change.findings.map(({ message }) => message).join('; '))
  for (const side of [content?.before, content?.after]) {
    if (side?.withheld === true) return without('the requester of the branch may not read it')
    if (side != null && side.size > side.bytes.length) return without(TOO_LARGE)
  }
  const [old, now] = [blobOf(change.old, content?.before), blobOf(change.new, content?.after)]
  const text = fileText(name, old, now)
  return { text, left: text === '' ? lostWords(change) : null }
}

export const TOO_LARGE = 'it is too large for a patch'

const without = (left: string): GitPatch => ({ text: '', left })

function blobOf(state: NodeState | null, side: ContentPair['after'] | undefined): Blob | null {
  if (state?.type === 'symlink') return { mode: '120000', bytes: state.link ?? NOTHING }
  if (state?.type !== 'file') return null
  return { mode: (state.mode & 0o100) === 0 ? '100644' : '100755', bytes: side?.bytes ?? NOTHING }
}

const NOTHING = new Uint8Array(0)

/** Directories come and go with what is in them; everything else that is here and not in git is not carried. */
function lostWords({ old, new: now }: Change): string | null {
  if (now === null) return null
  if (old === null || old.type !== now.type)
    return now.type === 'dir' ? 'git knows no directories, only what is in them' : null
  return 'only its owner, permissions, attributes or time would change'
}

/** Both sides of one path. A file that becomes a link, or the reverse, is one deletion and one creation. */
function fileText(name: string, old: Blob | null, now: Blob | null): string {
  if (old !== null && now !== null && (old.mode === '120000') !== (now.mode === '120000'))
    return `${fileText(name, old, null)}${fileText(name, null, now)}`
  const [before, after] = [old?.bytes ?? NOTHING, now?.bytes ?? NOTHING]
  const same = Buffer.compare(before, after) === 0
  if ((old === null && now === null) || (same && old?.mode === now?.mode)) return ''
  const lines = [`diff --git ${quoted(`a/${name}`)} ${quoted(`b/${name}`)}`]
  if (old === null) lines.push(`new file mode ${now?.mode}`)
  else if (now === null) lines.push(`deleted file mode ${old.mode}`)
  else if (old.mode !== now.mode) lines.push(`old mode ${old.mode}`, `new mode ${now.mode}`)
  if (!same || old === null || now === null)
    lines.push(`index ${old === null ? NO_BLOB : blobId(before)}..${now === null ? NO_BLOB : blobId(after)}`)
  const head = `${lines.join('\n')}\n`
  if (same) return head
  if ((old ?? now)?.mode !== '120000' && (isBinary(before) || isBinary(after)))
    return `${head}GIT binary patch\n${literal(after)}\n${literal(before)}\n`
  const from = old === null ? '/dev/null' : named(`a/${name}`)
  const to = now === null ? '/dev/null' : named(`b/${name}`)
  const hunks = exactDiff(before, after).map((hunk) => `${[hunkHeader(hunk), ...hunk.lines].join('\n')}\n`)
  return `${head}--- ${from}\n+++ ${to}\n${hunks.join('')}`
}

const NO_BLOB = '0'.repeat(40)

/** Git tries a binary patch only on the file that this names. */
const blobId = (bytes: Uint8Array): string =>
  createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex')

/** As git writes it: without the tab, patch(1) takes a name to end at its first blank. */
const named = (name: string): string => `${quoted(name)}${name.includes(' ') ? '\t' : ''}`

const SHORT: Readonly<Record<string, string>> = {
  ...{ '\x07': 'a', '\b': 'b', '\t': 't', '\n': 'n', '\v': 'v', '\f': 'f', '\r': 'r', '"': '"', '\\': '\\' },
}

/** Names of which not every byte is a printable character of ASCII stand in quotes, as C has them. */
function quoted(name: string): string {
  if (/^[\x20\x21\x23-\x5b\x5d-\x7e]*$/.test(name)) return name
  const inner = name.replace(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, (character) => {
    const short = SHORT[character]
    return `\\${short ?? character.charCodeAt(0).toString(8).padStart(3, '0')}`
  })
  return `"${inner}"`
}

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~'
const LINE_BYTES = 52

/** One side of a binary file: deflated, in lines of at most 52 bytes, each with its length in front. */
function literal(bytes: Uint8Array): string {
  const packed = deflateSync(bytes)
  const lines = [`literal ${bytes.length}`]
  for (let at = 0; at < packed.length; at += LINE_BYTES) {
    const part = packed.subarray(at, at + LINE_BYTES)
    const length = part.length <= 26 ? 64 + part.length : 96 + part.length - 26
    lines.push(`${String.fromCharCode(length)}${base85(part)}`)
  }
  return `${lines.join('\n')}\n`
}

/** Four bytes are five digits, the highest first; the last ones are filled up with zeros. */
function base85(bytes: Uint8Array): string {
  let text = ''
  for (let at = 0; at < bytes.length; at += 4) {
    let number = 0
    for (let next = at; next < at + 4; next++) number = number * 256 + (bytes[next] ?? 0)
    let digits = ''
    for (let left = 5; left > 0; left--) {
      digits = `${DIGITS[number % 85]}${digits}`
      number = Math.floor(number / 85)
    }
    text += digits
  }
  return text
}

const latin1 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
