// pure
import { createHash } from 'node:crypto'
import { bits, boolean, explicit, implicit, integer, octets, oid, sequence, set, time, utf8 } from './der.ts'
import type { Hostname } from './hostname.ts'

export interface CertificateFields {
  /** Up to 20 bytes, unique per issuer. */
  readonly serial: Uint8Array
  readonly issuer: string
  readonly subject: string
  readonly from: Date
  readonly until: Date
  /** SubjectPublicKeyInfo of the subject and of the issuer. */
  readonly publicKey: Uint8Array
  readonly issuerKey: Uint8Array
  /** Present for a leaf; absent for the authority itself. */
  readonly host?: Hostname
}

const ECDSA_SHA256 = sequence(oid('1.2.840.10045.4.3.2'))
const CN = '2.5.4.3'
const name = (text: string): Buffer => sequence(set(sequence(oid(CN), utf8(text))))

/** The part of a certificate that is signed (RFC 5280 TBSCertificate, version 3). */
export function unsignedCertificate(fields: CertificateFields): Buffer {
  return sequence(
    explicit(0, integer(Buffer.from([2]))),
    integer(fields.serial),
    ECDSA_SHA256,
    name(fields.issuer),
    sequence(time(fields.from), time(fields.until)),
    name(fields.subject),
    fields.publicKey,
    explicit(3, sequence(...extensions(fields))),
  )
}

export const signedCertificate = (unsigned: Uint8Array, signature: Uint8Array): Buffer =>
  sequence(unsigned, ECDSA_SHA256, bits(signature))

function extension(id: string, critical: boolean, value: Uint8Array): Buffer {
  return sequence(oid(id), ...(critical ? [boolean(true)] : []), octets(value))
}

const DIGITAL_SIGNATURE = bits(Buffer.from([0x80]), 7)
const CERT_AND_CRL_SIGN = bits(Buffer.from([0x06]), 1)

function extensions(fields: CertificateFields): Buffer[] {
  const { host } = fields
  const keys = [
    extension('2.5.29.14', false, octets(keyId(fields.publicKey))),
    extension('2.5.29.35', false, sequence(implicit(0, keyId(fields.issuerKey)))),
  ]
  if (host === undefined)
    return [
      extension('2.5.29.19', true, sequence(boolean(true), integer(Buffer.from([0])))),
      extension('2.5.29.15', true, CERT_AND_CRL_SIGN),
      ...keys,
    ]
  const { address } = host
  const alternative =
    address === undefined
      ? implicit(2, Buffer.from(host.text, 'ascii'))
      : implicit(7, Buffer.from(address.bytes))
  return [
    extension('2.5.29.19', true, sequence()),
    extension('2.5.29.15', true, DIGITAL_SIGNATURE),
    extension('2.5.29.37', false, sequence(oid('1.3.6.1.5.5.7.3.1'))),
    extension('2.5.29.17', false, sequence(alternative)),
    ...keys,
  ]
}

/** RFC 5280 method 1 hashes the key's bits; any unique value will do, and this one needs no parsing. */
const keyId = (publicKey: Uint8Array): Buffer =>
  createHash('sha256').update(publicKey).digest().subarray(0, 20)

export function pem(certificate: Uint8Array): string {
  const lines = Buffer.from(certificate).toString('base64').replace(/.{64}/g, '$&\n').trimEnd()
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`
}
