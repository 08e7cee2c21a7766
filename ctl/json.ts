// pure
import { isDangerous } from './render/visible.ts'

/**
 * One document per line. BigInts are decimal strings; bytes are base64. What would move the cursor or hide is written by
 * its number: the same to a program, and harmless to a person who looks at it.
 */
export function jsonText(value: unknown): string {
  return `${harmlessJson(
    JSON.stringify(value, (_key, item: unknown) => {
      if (typeof item === 'bigint') return item.toString()
      if (item instanceof Uint8Array) return Buffer.from(item).toString('base64')
      return item
    }),
  )}\n`
}

/** Whatever is dangerous stands inside a string of JSON: nothing outside of strings is. */
function harmlessJson(text: string): string {
  if (/^[\x20-\x7e]*$/.test(text)) return text
  let out = ''
  for (const character of text)
    out += isDangerous(character.codePointAt(0) ?? 0) ? numbered(character) : character
  return out
}

const numbered = (character: string): string =>
  Array.from({ length: character.length }, (_, at) => character.charCodeAt(at))
    .map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`)
    .join('')
