// pure
import { createHash } from 'node:crypto'

/** Where systems keep the authorities that Java trusts; the virtual machines of their packages link to it. */
export const JAVA_STORES = [
  '/etc/ssl/certs/java/cacerts',
  '/etc/pki/java/cacerts',
  '/etc/pki/ca-trust/extracted/java/cacerts',
] as const

/** Known to everybody: it only tells damage from none. */
const PASSWORD = 'changeit'
const MAGIC = 0xfeed_feed
const TRUSTED = 2

/** The certificates of a bundle of PEM. */
export const certificatesOf = (bundle: string): Buffer[] =>
  [...bundle.matchAll(/-----BEGIN CERTIFICATE-----([^-]+)-----END CERTIFICATE-----/g)].map(
    ([, base64 = '']) => Buffer.from(base64, 'base64'),
  )

/** A JKS of trusted certificates: Java reads no bundle. Every release since 1.2 reads this. */
export function javaStore(certificates: readonly Buffer[]): Buffer {
  const parts = [words(MAGIC, 2, certificates.length)]
  for (const [at, bytes] of certificates.entries()) {
    parts.push(words(TRUSTED), text(`authority-${at}`), Buffer.alloc(8), text('X.509'))
    parts.push(words(bytes.length), bytes)
  }
  const store = Buffer.concat(parts)
  const password = Buffer.from(PASSWORD, 'utf16le').swap16()
  const check = createHash('sha1').update(password).update('Mighty Aphrodite').update(store).digest()
  return Buffer.concat([store, check])
}

function words(...values: number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length)
  for (const [at, value] of values.entries()) bytes.writeUInt32BE(value, 4 * at)
  return bytes
}

function text(value: string): Buffer {
  const bytes = Buffer.alloc(2 + value.length)
  bytes.writeUInt16BE(value.length)
  bytes.write(value, 2, 'latin1')
  return bytes
}
