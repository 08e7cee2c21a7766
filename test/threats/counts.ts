/** A race or a cycle that is shown by many rounds: how many are asked for, how many an ordinary run can afford. */
export interface Count {
  readonly row: string
  readonly what: string
  readonly asked: number
  readonly usual: number
  /** Sets another number. */
  readonly variable: string
  /** What came of the whole number on a machine with two busy processors. */
  readonly full: string
}

export const COUNTS: readonly Count[] = [
  {
    ...{ row: 'S3', what: 'launches under an exchange', asked: 10_000, usual: 150 },
    ...{
      variable: 'PUZZLED_ESCAPE_LAUNCHES',
      full: 'passed beside a very busy machine, where the base itself is exchanged and (in 2,708 s) where a directory above it is',
    },
  },
  {
    ...{ row: 'S4', what: 'launches under attack', asked: 10_000, usual: 150 },
    ...{ variable: 'PUZZLED_ESCAPE_LAUNCHES', full: 'passed in 1,431 s beside a very busy machine' },
  },
  {
    ...{ row: 'S14', what: 'commits beside a writer', asked: 1000, usual: 100 },
    ...{
      variable: 'PUZZLED_WRITER_ROUNDS',
      full: 'passed in 703 s on the host’s filesystem; on small XFS and btrfs images the test’s own writer failed before the end',
    },
  },
  {
    ...{ row: 'S20', what: 'levels of a tree', asked: 5000, usual: 300 },
    ...{ variable: 'PUZZLED_ESCAPE_DEPTH', full: 'passed in 37 s' },
  },
  {
    ...{ row: 'S23', what: 'exchanges during commits', asked: 10_000, usual: 10_000 },
    ...{ variable: 'PUZZLED_RACE_ROUNDS', full: 'is the ordinary run' },
  },
  {
    ...{ row: 'S23', what: 'exchanges during commits on images of ext4 and btrfs', asked: 1000, usual: 200 },
    ...{ variable: 'PUZZLED_RACE_IMAGE_ROUNDS', full: 'passed in 91 s' },
  },
  {
    ...{ row: 'S45', what: 'rewritten paths', asked: 1_000_000, usual: 3000 },
    ...{ variable: 'PUZZLED_ESCAPE_ROUNDS', full: 'passed in 90 s' },
  },
  {
    ...{ row: 'S49', what: 'branches that are killed', asked: 1000, usual: 100 },
    ...{ variable: 'PUZZLED_ESCAPE_CYCLES', full: 'passed in 82 s' },
  },
  {
    ...{ row: 'S49', what: 'commands that are killed', asked: 1000, usual: 8 },
    ...{ variable: 'PUZZLED_ESCAPE_KILLS', full: 'passed in 1,323 s beside emulated machines' },
  },
]

/** How many rounds this run makes, and the time that they may take: a slow machine is no failure. */
export function roundsOf(variable: string): { rounds: number; timeout: number } {
  const count = COUNTS.find((known) => known.variable === variable)
  if (count === undefined) throw new Error(`${variable} is in no row of the counts`)
  const rounds = Number(process.env[variable] ?? count.usual)
  return { rounds, timeout: 240_000 + rounds * 2000 }
}
