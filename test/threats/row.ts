/** One threat: where it is attacked, how the attack is known to work, and what stands in its way. */
export interface ThreatRow {
  readonly id: string
  readonly threat: string
  /** `file › title` of a `describe` or test. */
  readonly shown: readonly string[]
  /** What would make the attack's test red if the attack were broken. */
  readonly control: string
  readonly behind: string
}

export const row = (
  id: string,
  threat: string,
  shown: readonly string[],
  control: string,
  behind: string,
): ThreatRow => ({
  id,
  threat,
  shown,
  control,
  behind,
})
