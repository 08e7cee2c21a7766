// pure

/**
 * Text from agents on its way to a terminal. Nothing of it may move the cursor, change colours, reorder the line or
 * hide: control characters, directional overrides, zero-width and tag characters are shown as what they are.
 */
const DANGEROUS: readonly (readonly [from: number, to: number])[] = [
  [0x00, 0x08], // C0 without tab and newline
  [0x0b, 0x1f],
  [0x7f, 0x9f], // DEL and C1
  [0xad, 0xad], // soft hyphen
  [0x34f, 0x34f], // combining grapheme joiner
  [0x61c, 0x61c], // Arabic letter mark
  [0x115f, 0x1160], // Hangul fillers
  [0x17b4, 0x17b5], // Khmer inherent vowels
  [0x180b, 0x180f], // Mongolian selectors and vowel separator
  [0x200b, 0x200f], // zero-width characters and directional marks
  [0x2028, 0x202e], // line and paragraph separators, embeddings, overrides
  [0x2060, 0x206f], // invisible operators, isolates
  [0x3164, 0x3164], // Hangul filler
  [0xd800, 0xdfff], // lone surrogates
  [0xfe00, 0xfe0f], // variation selectors
  [0xfeff, 0xfeff], // byte order mark
  [0xffa0, 0xffa0], // halfwidth Hangul filler
  [0xfff0, 0xfffb], // specials
  [0x13430, 0x1345f], // Egyptian hieroglyph format controls
  [0x1bca0, 0x1bca3], // shorthand format controls
  [0x1d173, 0x1d17a], // musical format controls
  [0xe0000, 0xe0fff], // tags and supplementary variation selectors
]

/** Is this character shown as what it is instead of being sent to a terminal? */
export const isDangerous = (code: number): boolean =>
  DANGEROUS.some(([from, to]) => code >= from && code <= to)

/** Most text is plain ASCII and is returned as it is. */
const HARMLESS = /^[\n\t\x20-\x7e]*$/

const SHORT: Readonly<Record<string, string>> = {
  '\r': '\\r',
  '\b': '\\b',
  '\f': '\\f',
  '\v': '\\v',
  '\u001b': '\\e',
}

function show(character: string, code: number): string {
  const short = SHORT[character]
  if (short !== undefined) return short
  const hex = code.toString(16)
  return code < 0x100 ? `\\x${hex.padStart(2, '0')}` : `<U+${hex.toUpperCase().padStart(4, '0')}>`
}

type Mark = (shown: string) => string
const unmarked: Mark = (shown) => shown

/** Many lines: newlines and tabs stay. `mark` may colour what is shown instead of a character. */
export function visibleText(text: string, mark: Mark = unmarked): string {
  if (HARMLESS.test(text)) return text
  let out = ''
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0
    out += isDangerous(code) ? mark(show(character, code)) : character
  }
  return out
}

/** One line, such as a file name: newlines and tabs are shown as well. */
export const visibleLine = (text: string, mark: Mark = unmarked): string =>
  visibleText(text, mark)
    .replaceAll('\n', () => mark('\\n'))
    .replaceAll('\t', () => mark('\\t'))
