import { createHash, type KeyObject, verify } from 'node:crypto'
import type { HeadSigner } from './signer.ts'

/** A signed document as DSSE writes it (https://github.com/secure-systems-lab/dsse), so that other tools can check it. */
export interface Envelope {
  payloadType: string
  /** Base64. */
  payload: string
  signatures: { keyid: string; sig: string }[]
}

/** What is signed: the type and the bytes, each with its length, so that neither can be taken for a part of the other. */
const signedBytes = (type: string, payload: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from(`DSSEv1 ${Buffer.byteLength(type)} ${type} ${payload.length} `), payload])

export const keyIdOf = (key: KeyObject): string =>
  createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('hex')

export function seal(type: string, payload: Uint8Array, signer: HeadSigner): Envelope {
  return {
    payloadType: type,
    payload: Buffer.from(payload).toString('base64'),
    signatures: [{ keyid: keyIdOf(signer.publicKey), sig: signer.signBytes(signedBytes(type, payload)) }],
  }
}

/** The payload, or null when no signature of this key for this type is on it. */
export function unseal(value: unknown, type: string, key: KeyObject): Buffer | null {
  if (!isEnvelope(value) || value.payloadType !== type) return null
  const payload = Buffer.from(value.payload, 'base64')
  const bytes = signedBytes(type, payload)
  // `keyid` is a hint and not covered by the signature: every signature is tried.
  const good = value.signatures.some(({ sig }) => verify(null, bytes, key, Buffer.from(sig, 'base64')))
  return good ? payload : null
}

function isEnvelope(value: unknown): value is Envelope {
  if (typeof value !== 'object' || value === null) return false
  const { payloadType, payload, signatures } = value as Partial<Record<keyof Envelope, unknown>>
  if (typeof payloadType !== 'string' || typeof payload !== 'string' || !Array.isArray(signatures))
    return false
  return signatures.every((one: unknown) => typeof (one as { sig?: unknown } | null)?.sig === 'string')
}
