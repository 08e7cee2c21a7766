// pure

/**
 * Characters that a reader does not see: soft hyphen, joiners, direction marks, variation selectors, fillers, tags.
 * File systems that ignore case ignore some of them as well, and reviewers ignore all of them.
 */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}/gu

/** What makes a name look like another one: the invisible characters and everything that moves a cursor. */
const DECEPTIVE =
  /[\0-\x1f\x7f-\x9f\u2028\u2029\ufff9-\ufffb]|\p{Bidi_Control}|(?![\ufe00-\ufe0f])\p{Default_Ignorable_Code_Point}/u

const ASCII = /^[ -~]*$/

/**
 * The form in which names are compared with the catalogue: whatever two spellings some file system or program takes
 * for one name fold to the same text. Upper before lower, so that ß, ſ, ı and K fold with their relatives, and lower
 * before that, because ẞ is a capital already.
 */
export function fold(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase()
  const bare = text.normalize('NFKC').replace(INVISIBLE, '')
  return bare.toLowerCase().toUpperCase().toLowerCase().normalize('NFKC').replace(INVISIBLE, '')
}

export const isDeceptive = (text: string): boolean => !ASCII.test(text) && DECEPTIVE.test(text)

/** Text with every character that a terminal or a reader would be deceived by shown as an escape. */
export const showText = (text: string): string =>
  ASCII.test(text)
    ? text
    : text.replace(new RegExp(DECEPTIVE.source, 'gu'), (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`)
