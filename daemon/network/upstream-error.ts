// pure
import { BadAnswer } from './answer-parser.ts'
import { NetworkDenied } from './denial.ts'

/** What the agent is told when the other end fails: a status, a rule id and a sentence without internals. */
export function upstreamError(error: unknown): NetworkDenied {
  if (error instanceof NetworkDenied) return error
  const cause = error instanceof Error && error.cause instanceof NetworkDenied ? error.cause : undefined
  if (cause !== undefined) return cause
  const code = String((error as { code?: unknown } | null)?.code ?? '')
  if (code === 'ETIMEDOUT')
    return new NetworkDenied(504, 'upstream-timeout', 'The other end did not answer in time', {
      cause: error,
    })
  if (/CERT|SELF_SIGNED|ISSUER|ALTNAME|ERR_SSL|ERR_TLS/.test(code))
    return new NetworkDenied(
      502,
      'upstream-certificate',
      `The other end's certificate is not valid: ${code}`,
      { cause: error },
    )
  if (code === 'ANSWER_HEADERS')
    return new NetworkDenied(502, 'upstream-headers', "The other end's headers are too large", {
      cause: error,
    })
  return new NetworkDenied(
    502,
    'upstream-failed',
    error instanceof BadAnswer ? error.message : `The other end failed: ${code === '' ? 'no HTTP' : code}`,
    { cause: error },
  )
}
