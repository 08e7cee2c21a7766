/** The last line `N passed, N failed, N skipped` of an output, or undefined. */
export function parseTotals(output) {
  const found = [...output.matchAll(/^(\d+) passed, (\d+) failed, (\d+) skipped\s*$/gm)].at(-1)
  if (found === undefined) return undefined
  const [, passed, failed, skipped] = found.map(Number)
  return { passed, failed, skipped }
}
