// pure
import { encodePath } from '../contract/bytes.ts'
import { findEncoded, isDense } from './content-entropy.ts'
import type { ContentFinding } from './content-finding.ts'
import { scanGitAttributes, scanGitConfig } from './content-git.ts'
import { scanLockfile, scanManifest } from './content-packages.ts'
import { scanSecrets, scanText } from './content-text.ts'
import { fold } from './fold.ts'

/** What was learned about one file's new content. */
export interface ContentScan {
  /** False: `reason` says why, and nothing may be concluded from the absence of findings. */
  examined: boolean
  reason?: string
  /** Reading failed, as opposed to a documented limit. */
  failed?: boolean
  binary: boolean
  /** Machine code or an archive of it: ELF, PE, Mach-O, Java class, WebAssembly. */
  native: boolean
  findings: readonly ContentFinding[]
}

/** A file beyond this is examined in its first part only, and says so. */
export const MAX_SCAN_BYTES = 1024 * 1024
/** What all files of one changeset may be together; the rest is listed as not examined. */
export const MAX_SCAN_TOTAL = 64 * 1024 * 1024
/** The same finding many times in one file is one finding with a number. */
const MAX_FINDINGS = 20

/**
 * Examines the new content of a file. With the old content at hand only what is new is reported. `complete` says
 * whether `bytes` is the whole file.
 */
export function scanContent(
  path: Uint8Array,
  bytes: Uint8Array,
  options: { old?: Uint8Array; complete: boolean } = { complete: true },
): ContentScan {
  const content = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, MAX_SCAN_BYTES))
  const complete = options.complete && bytes.byteLength <= MAX_SCAN_BYTES
  const name = fold(encodePath(path).path)
  const native = isNative(content)
  const binary = native || isBinary(content) || isGitObject(name, content)
  const now = findingsOf(name, content, options.old, binary)
  const before = options.old === undefined ? new Set<string>() : keysOf(name, options.old)
  const fresh = now.filter((found) => !before.has(keyOf(found)))
  return {
    examined: complete,
    ...(complete ? {} : { reason: `only the first ${content.byteLength} bytes were examined` }),
    binary,
    native,
    findings: fresh.slice(0, MAX_FINDINGS),
  }
}

const keyOf = ({ rule, message }: ContentFinding): string =>
  `${rule}\0${message.replace(/line \d+/g, 'line')}`

function keysOf(name: string, old: Uint8Array): Set<string> {
  const content = Buffer.from(old.buffer, old.byteOffset, Math.min(old.byteLength, MAX_SCAN_BYTES))
  return new Set(
    findingsOf(name, content, undefined, isBinary(content) || isGitObject(name, content)).map(keyOf),
  )
}

function findingsOf(
  path: string,
  content: Buffer,
  old: Uint8Array | undefined,
  binary: boolean,
): ContentFinding[] {
  if (binary) return isDense(content) ? [DENSE] : []
  const text = content.toString('utf8')
  const name = path.slice(path.lastIndexOf('/') + 1)
  const before = old === undefined ? undefined : Buffer.from(old).toString('utf8')
  return [
    ...scanSecrets(text),
    ...scanText(name, text),
    ...findEncoded(name, text),
    ...(name === 'package.json' ? scanManifest(text, before) : []),
    ...scanLockfile(name, text),
    ...(/(^|\/)\.git\/(.*\/)?config(\.worktree)?$/.test(path) ? scanGitConfig(text, before) : []),
    ...(name === '.gitattributes' || path.endsWith('.git/info/attributes') ? scanGitAttributes(text) : []),
  ]
}

const DENSE: ContentFinding = {
  rule: 'high-entropy',
  message: 'looks like encrypted or packed data and is no known format',
}

/** Git's own test: a NUL near the beginning. */
const isBinary = (content: Buffer): boolean => content.subarray(0, 8000).includes(0)

/**
 * A loose object of git: compressed, and often without a NUL. Only where git keeps them and only with the header of
 * the format: elsewhere the same bytes could be a text that begins oddly.
 */
const isGitObject = (path: string, content: Buffer): boolean =>
  /(^|\/)\.git\/objects\/[0-9a-f]{2}\/[0-9a-f]{38}(?:[0-9a-f]{24})?$/.test(path) &&
  content.length >= 2 &&
  ((content[0] ?? 0) & 0x0f) === 8 &&
  content.readUInt16BE(0) % 31 === 0

const NATIVE = [
  '7f454c46', // ELF
  '4d5a', // PE
  'feedface',
  'feedfacf',
  'cefaedfe',
  'cffaedfe', // Mach-O
  'cafebabe', // Java class, universal Mach-O
  '0061736d', // WebAssembly
]

function isNative(content: Buffer): boolean {
  const head = content.subarray(0, 4).toString('hex')
  // "MZ" is also how a text may begin; a program has a NUL in its header.
  return NATIVE.some((magic) => head.startsWith(magic)) && content.subarray(0, 64).includes(0)
}
