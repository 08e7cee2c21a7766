// pure
const NAME = /^(\d{8})\.jsonl$/

export const segmentName = (number: number): string => `${String(number).padStart(8, '0')}.jsonl`

/** Undefined for whatever else lies there. */
export function segmentNumber(name: string): number | undefined {
  const digits = NAME.exec(name)?.[1]
  return digits === undefined ? undefined : Number(digits)
}
