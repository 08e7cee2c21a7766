// pure
import type { ContentFinding } from './content-finding.ts'

/** Formats that are dense by nature: images, archives, fonts, media, git objects (zlib) and packs. */
const DENSE_FORMATS = [
  '89504e47',
  'ffd8ff',
  '47494638',
  '52494646',
  '504b0304',
  '504b0506',
  '1f8b',
  '425a68',
  'fd377a58',
  '28b52ffd',
  '377abcaf',
  '774f4632',
  '774f4646',
  '4f54544f',
  '00010000',
  '25504446',
  '49443',
  'fff',
  '4f676753',
  '1a45dfa3',
  '664c6143',
  '7801',
  '785e',
  '789c',
  '78da',
  '5041434b', // git pack
  'ff744f63', // git pack index
  '44495243', // git index
  '53514c69', // SQLite
  '00000018',
  '0000001c',
  '00000020', // ISO media
]

/** Below this a few random bytes say nothing. */
const MIN_DENSE = 4096

/** Encrypted or packed data in a file that claims to be nothing in particular. */
export function isDense(content: Buffer): boolean {
  if (content.byteLength < MIN_DENSE) return false
  const head = content.subarray(0, 4).toString('hex')
  if (DENSE_FORMATS.some((magic) => head.startsWith(magic))) return false
  return entropy(content) > 7.9
}

/** Shannon entropy in bits per byte. */
export function entropy(content: Uint8Array): number {
  const counts = new Uint32Array(256)
  for (const byte of content) counts[byte] = (counts[byte] ?? 0) + 1
  let bits = 0
  for (const count of counts)
    if (count > 0) bits -= (count / content.length) * Math.log2(count / content.length)
  return bits
}

/** Runs that are data and no words: base64 or hex of this length hides more than a digest or a key. */
const BLOB = /[A-Za-z0-9+/_-]{1024,}={0,2}/g

/** Files in which such runs are ordinary. */
const BLOB_FILES = /\.(?:svg|map|ipynb|lock|sum|snap|pem|crt|cer|csr|asc|sig|eml|min\.js|min\.css|css|html?)$/

export function findEncoded(name: string, text: string): ContentFinding[] {
  if (BLOB_FILES.test(name)) return []
  const found: ContentFinding[] = []
  for (const { 0: run, index } of text.matchAll(BLOB)) {
    // Images in a data URL are seen for what they are; a run of one letter is a ruler.
    if (/data:(?:image|font)\/[a-z0-9.+-]+;base64,$/.test(text.slice(Math.max(0, index - 60), index)))
      continue
    if (entropy(Buffer.from(run)) < 3.2) continue
    found.push({
      rule: 'encoded-blob',
      message: `line ${lineOf(text, index)}: ${run.length} characters of encoded data`,
    })
  }
  return found
}

export function lineOf(text: string, index: number): number {
  let line = 1
  for (let at = text.indexOf('\n'); at >= 0 && at < index; at = text.indexOf('\n', at + 1)) line++
  return line
}
