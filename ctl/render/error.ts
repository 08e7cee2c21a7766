// pure
import { type ErrorCode, exitStatusOf } from '../../daemon/contract/errors.ts'
import { PuzzledError } from '../../daemon/lib/errors.ts'
import type { Paint } from './paint.ts'
import { visibleText } from './visible.ts'

/** One sentence and, where there is a remedy, a second line. A defect also says where it happened. */
export function errorText(error: unknown, paint: Paint): string {
  const head = paint.red('puzzlectl:')
  if (error instanceof PuzzledError) {
    const hint = error.hint === undefined ? '' : `  ${paint.dim('hint:')} ${visibleText(error.hint)}\n`
    return `${head} ${visibleText(error.message)}${causeText(error.cause)}\n${hint}`
  }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return `${head} internal error: ${visibleText(text)}\n`
}

/** The cause belongs to the sentence only when it says more than the sentence does. */
function causeText(cause: unknown): string {
  return cause instanceof Error && cause.message !== '' ? `: ${visibleText(cause.message)}` : ''
}

export function errorJson(error: unknown): {
  error: { code: ErrorCode; message: string; hint?: string; data?: unknown }
} {
  if (!(error instanceof PuzzledError))
    return { error: { code: 'internal', message: error instanceof Error ? error.message : String(error) } }
  return {
    error: {
      code: error.code,
      message: error.message,
      ...(error.hint === undefined ? {} : { hint: error.hint }),
      ...(error.data === undefined ? {} : { data: error.data }),
    },
  }
}

export const errorStatus = (error: unknown): number =>
  exitStatusOf(error instanceof PuzzledError ? error.code : 'internal')
