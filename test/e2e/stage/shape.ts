// pure

/** What differs between two runs of the same commands: names that chance gives, times, digests and amounts. */
const MASKS: readonly (readonly [RegExp, string])[] = [
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, 'TIME'],
  [/\bcommitted as c\w+/g, 'committed as COMMIT'],
  [/\bcommit c\w{11}\b/g, 'commit COMMIT'],
  [/\brevert c\w+/g, 'revert COMMIT'],
  [/\b[0-9a-f]{64}\b/g, 'DIGEST'],
  [/\b[0-9a-f]{7,40}\b/g, 'HASH'],
  [/^r\w{11} /gm, 'REQUEST '],
  [/\bbranch \w{6,10}\b/g, 'branch ID'],
  [/\b\d+(\.\d+)? (B|[kMG]B|[KMG]iB)(?!\w)/g, 'SIZE'],
  [/\b\d+ (bytes|records|signed heads|files|ms)\b/g, 'SO MANY $1'],
  // Columns are as wide as what chance put into them.
  [/ {2,}/g, '  '],
]

/** The same text for two runs that did the same. */
export const shapeOf = (text: string): string =>
  MASKS.reduce((result, [pattern, name]) => result.replace(pattern, name), text)
