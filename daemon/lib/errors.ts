// pure
import type { ErrorCode } from '../contract/errors.ts'

export interface ErrorDetails {
  /** What the reader can do about it: one sentence, a command where there is one. */
  hint?: string
  cause?: unknown
  /** Facts for programs; must survive JSON. */
  data?: Record<string, unknown>
}

/** Their message is a list of problems; every other one is a sentence, whatever a name that it quotes holds. */
const LISTS: ReadonlySet<ErrorCode> = new Set(['config-invalid', 'profile-invalid'])

/** A line break in a name must not begin a line that looks like one of ours; over the bus it would begin the hint. */
const oneLine = (message: string): string => message.replaceAll('\r', '\\r').replaceAll('\n', '\\n')

/** The one error type that crosses folders: a code from the table, a sentence that names the thing, and a remedy. */
export class PuzzledError extends Error {
  override readonly name = 'PuzzledError'
  readonly code: ErrorCode
  readonly hint: string | undefined
  readonly data: Record<string, unknown> | undefined

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(
      LISTS.has(code) ? message : oneLine(message),
      details.cause === undefined ? undefined : { cause: details.cause },
    )
    this.code = code
    this.hint = details.hint
    this.data = details.data
  }
}

/** Several failures of one clean-up: all of them are reported, the first is the cause. */
export function combineErrors(message: string, errors: readonly unknown[]): Error {
  return errors.length === 1 && errors[0] instanceof Error ? errors[0] : new AggregateError(errors, message)
}

/** A closed union was not handled; the type makes this unreachable. */
export function unreachable(value: never): never {
  throw new PuzzledError('internal', `Unhandled case ${JSON.stringify(value)}`)
}

export const errnoOf = (error: unknown): string | undefined => {
  if (typeof error !== 'object' || error === null) return undefined
  const code =
    (error as { errnoName?: unknown; code?: unknown }).errnoName ?? (error as { code?: unknown }).code
  return typeof code === 'string' && /^E[A-Z0-9]+$/.test(code) ? code : undefined
}
