// pure
import type { Paint } from './paint.ts'

/** A table as `systemctl` prints it: a header, columns as wide as needed, the last one unpadded. Cells hold no escapes. */
export function columnsText(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  paint: Paint,
): string {
  const widths = header.map((title, at) => Math.max(title.length, ...rows.map((row) => row[at]?.length ?? 0)))
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, at) => (at === cells.length - 1 ? cell : cell.padEnd(widths[at] ?? 0)))
      .join('  ')
      .trimEnd()
  return `${[paint.bold(line(header)), ...rows.map(line)].join('\n')}\n`
}
