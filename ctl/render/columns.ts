// pure
import type { Paint } from './paint.ts'
import { cellWidth, cutText, foldText } from './width.ts'

/**
 * A table as `systemctl` prints it: a header, columns as wide as needed, the last one unpadded. Cells hold no escapes. With
 * a `width`, as terminals have one, lines are cut to it and say so by their last character; or else what does not fit goes
 * on below its column.
 */
export function columnsText(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  paint: Paint,
  width = Number.POSITIVE_INFINITY,
  overflow: 'cut' | 'fold' = 'cut',
): string {
  const widths = header.map((title, at) =>
    Math.max(title.length, ...rows.map((row) => cellWidth(row[at] ?? ''))),
  )
  const lastAt = widths.slice(0, -1).reduce((sum, one) => sum + one + 2, 0)
  const hang = lastAt + NARROWEST_COLUMN > width ? 4 : lastAt
  const line = (cells: readonly string[]): string => {
    const whole = cells
      .map((cell, at) =>
        at === cells.length - 1 ? cell : cell + ' '.repeat((widths[at] ?? 0) - cellWidth(cell)),
      )
      .join('  ')
      .trimEnd()
    return overflow === 'cut' ? cutText(whole, width) : foldText(whole, width, hang)
  }
  return `${[paint.bold(line(header)), ...rows.map(line)].join('\n')}\n`
}

/** In one that is narrower nobody reads text that goes on below. */
const NARROWEST_COLUMN = 16
