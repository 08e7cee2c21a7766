// pure
import { NetworkDenied } from '../denial.ts'
import type { RequestFields } from './request-fields.ts'

/** In place of a head that was too large to be kept. */
export const NO_REQUEST: RequestFields = {
  method: 'GET',
  path: '/',
  length: undefined,
  expectsContinue: false,
}

/** Why a request is answered without being judged. */
export function refusalOf(asked: RequestFields | undefined): NetworkDenied | undefined {
  if (asked === undefined) return new NetworkDenied(431, 'headers-too-large', 'The headers are too large')
  // One in the other could go on without end, and each of them costs memory until the last one is closed.
  if (asked.method === 'CONNECT')
    return new NetworkDenied(400, 'nested-connect', 'A tunnel begins at the proxy, not in a connection')
  return undefined
}

/** What is told of a connection that is ended for what it sent. */
export function endOf(calm: boolean, why: string, cause: unknown): NetworkDenied {
  return new NetworkDenied(calm ? 429 : 400, calm ? 'too-much-chatter' : 'bad-connection', why, { cause })
}
