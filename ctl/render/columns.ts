// pure
import type { Paint } from './paint.ts'

/**
 * A table as `systemctl` prints it: a header, columns as wide as needed, the last one unpadded. Cells hold no escapes. With
 * a `width`, as terminals have one, lines are cut to it and say so by their last character.
 */
export function columnsText(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  paint: Paint,
  width = Number.POSITIVE_INFINITY,
): string {
  const widths = header.map((title, at) =>
    Math.max(title.length, ...rows.map((row) => cellWidth(row[at] ?? ''))),
  )
  const line = (cells: readonly string[]): string =>
    cutText(
      cells
        .map((cell, at) =>
          at === cells.length - 1 ? cell : cell + ' '.repeat((widths[at] ?? 0) - cellWidth(cell)),
        )
        .join('  ')
        .trimEnd(),
      width,
    )
  return `${[paint.bold(line(header)), ...rows.map(line)].join('\n')}\n`
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

const MARKS = /\p{Mn}|\p{Me}/u
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u

/** How many columns of a terminal a text takes: ideographs and pictures take two, marks none. */
function cellWidth(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length
  let width = 0
  for (const character of text) width += MARKS.test(character) ? 0 : WIDE.test(character) ? 2 : 1
  return width
}
