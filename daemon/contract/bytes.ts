// pure

/**
 * Names of agents are bytes. In JSON a name is its UTF-8 text when that is lossless; otherwise `path` shows the bad
 * bytes as `\xNN` for people and `path64` carries the exact bytes for programs.
 */
export interface PathText {
  path: string
  path64?: string
}

export function encodePath(bytes: Uint8Array): PathText {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const text = buffer.toString('utf8')
  if (Buffer.from(text, 'utf8').equals(buffer)) return { path: text }
  return { path: showBytes(buffer), path64: buffer.toString('base64') }
}

export function decodePath(text: PathText): Buffer {
  return text.path64 === undefined ? Buffer.from(text.path, 'utf8') : Buffer.from(text.path64, 'base64')
}

/** The pattern of a selection that means exactly this path of a base. */
export const exactPattern = (base: string, path: Uint8Array): string =>
  `=${base}/${showBytes(Buffer.from(path.buffer, path.byteOffset, path.byteLength))}`

/** Valid UTF-8 sequences as they are, every other byte as `\xNN`. */
export function showBytes(buffer: Buffer): string {
  let shown = ''
  for (let at = 0; at < buffer.length; ) {
    const length = sequenceLength(buffer, at)
    if (length === 0) {
      shown += `\\x${(buffer[at] ?? 0).toString(16).padStart(2, '0')}`
      at += 1
    } else {
      shown += buffer.toString('utf8', at, at + length)
      at += length
    }
  }
  return shown
}

function sequenceLength(buffer: Buffer, at: number): number {
  for (let length = 1; length <= 4 && at + length <= buffer.length; length++) {
    const part = buffer.subarray(at, at + length)
    if (Buffer.from(part.toString('utf8'), 'utf8').equals(part)) return length
  }
  return 0
}
