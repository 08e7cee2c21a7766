// pure

/**
 * Lines that are wider than the screen go on below, indented by `hang` columns, so that what they belong to stays visible.
 * They break between words: a path or a digest stays in one piece, which the terminal breaks and people can copy.
 */
export function foldText(text: string, width: number | undefined, hang: number): string {
  if (width === undefined) return text
  // What goes on below needs room for some words, or half of a screen that has not even that.
  const indent = Math.min(hang, Math.max(Math.floor(width / 2), width - 24))
  return text
    .split('\n')
    .map((line) => (cellWidth(line) <= width ? line : foldLine(line, width, indent)))
    .join('\n')
}

function foldLine(line: string, width: number, indent: number): string {
  let folded = ''
  let used = 0
  for (const [, gap = '', word = ''] of line.matchAll(/( *)([^ ]+)/g)) {
    const size = cellWidth(word)
    const fits = used + gap.length + size <= width
    // One that is wider than a line of its own gains nothing from a new one.
    if (fits || used === 0 || indent + size > width) {
      folded += gap + word
      used = ((used + gap.length + size - 1) % width) + 1
    } else {
      folded += `\n${' '.repeat(indent)}${word}`
      used = indent + size
    }
  }
  return folded
}

/** At most so many columns; an ellipsis stands for what is left out. */
export function cutText(text: string, width: number): string {
  if (cellWidth(text) <= width) return text
  let cut = ''
  let used = 1
  for (const character of text) {
    used += cellWidth(character)
    if (used > width) break
    cut += character
  }
  return `${cut}…`
}

const COLOURS = /\u001b\[\d+m/g
const MARKS = /\p{Mn}|\p{Me}/u
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u

/** How many columns of a terminal a text takes: ideographs and pictures take two, marks and our own colours none. */
export function cellWidth(painted: string): number {
  const text = painted.replace(COLOURS, '')
  if (/^[\x20-\x7e]*$/.test(text)) return text.length
  let width = 0
  for (const character of text) width += MARKS.test(character) ? 0 : WIDE.test(character) ? 2 : 1
  return width
}
