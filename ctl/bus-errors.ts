import { busNameOf, ERRORS, type ErrorCode } from '../daemon/contract/errors.ts'
import type { BusError } from '../daemon/lib/bus-connection.ts'
import { PuzzledError } from '../daemon/lib/errors.ts'

const CODES = new Map<string, ErrorCode>(
  Object.entries(ERRORS).flatMap(([code, { bus }]) =>
    bus === null ? [] : [[busNameOf(code as ErrorCode), code as ErrorCode]],
  ),
)

const GONE = new Set(['NoReply', 'Disconnected', 'ServiceUnknown', 'NameHasNoOwner', 'Timeout'])

/** Message and hint travel as the first line and the rest. */
export function typedError(error: BusError): PuzzledError {
  const [message = '', ...hint] = error.message.split('\n')
  const code = CODES.get(error.busName)
  if (code !== undefined)
    return new PuzzledError(code, message, hint.length === 0 ? {} : { hint: hint.join('\n') })
  const standard = error.busName.replace(/^org\.freedesktop\.DBus\.Error\./, '')
  if (standard === 'UnknownObject')
    return new PuzzledError('branch-unknown', message, { hint: 'puzzlectl ls --all shows all branches.' })
  if (GONE.has(standard))
    return new PuzzledError('bus-gone', 'The daemon went away during the call', {
      hint: 'What it did is on record; once it runs again: puzzlectl ls',
    })
  return new PuzzledError(
    'bus-gone',
    `The daemon does not answer as expected: ${error.message} (${error.busName})`,
    { hint: 'Are puzzlectl and puzzled of the same version? systemctl restart puzzled' },
  )
}
