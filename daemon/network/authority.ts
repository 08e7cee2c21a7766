import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import type { SecureContext } from 'node:tls'
import { pem, signedCertificate, unsignedCertificate } from './certificate.ts'
import type { Hostname } from './hostname.ts'

const DAY = 86_400_000
const MAX_LEAVES = 512

/**
 * The certificate authority of one branch. Its key exists in this process's memory only, nothing outside the branch
 * trusts it, and it ends with the branch.
 */
export class BranchAuthority {
  /** For the trust store inside the branch. */
  readonly certificate: string
  readonly #name: string
  readonly #caKey: KeyObject
  readonly #caPublic: Buffer
  readonly #from: Date
  readonly #leaves = new Map<string, SecureContext>()
  #leaf: { key: string; publicKey: Buffer } | undefined

  constructor(branch: string) {
    this.#name = `puzzled branch ${branch}`
    this.#from = new Date(Math.floor((Date.now() - DAY) / 1000) * 1000)
    const ca = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    this.#caKey = ca.privateKey
    this.#caPublic = ca.publicKey.export({ type: 'spki', format: 'der' })
    this.certificate = pem(this.#issue(this.#name, this.#caPublic, 3650))
  }

  /** A TLS context with a certificate for exactly this host; the most recently used ones are kept. */
  contextFor(host: Hostname): SecureContext {
    const known = this.#leaves.get(host.text)
    if (known !== undefined) {
      this.#leaves.delete(host.text)
      this.#leaves.set(host.text, known)
      return known
    }
    // Loaded by the first handshake: many agents have none.
    const { createSecureContext } = process.getBuiltinModule('node:tls')
    const context = createSecureContext({
      key: this.#leafKey().key,
      cert: this.leafFor(host) + this.certificate,
      minVersion: 'TLSv1.2',
    })
    this.#leaves.set(host.text, context)
    for (const oldest of this.#leaves.keys()) {
      if (this.#leaves.size <= MAX_LEAVES) break
      this.#leaves.delete(oldest)
    }
    return context
  }

  /** Clients refuse leaves that are valid for more than 825 days. */
  leafFor(host: Hostname): string {
    // A common name holds 64 characters at most; the alternative name is what counts.
    return pem(this.#issue(host.text.slice(0, 64), this.#leafKey().publicKey, 365, host))
  }

  /** One for all leaves: making a key costs more than signing, and all of them live and die together. */
  #leafKey(): { key: string; publicKey: Buffer } {
    if (this.#leaf === undefined) {
      const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      this.#leaf = {
        key: privateKey.export({ type: 'sec1', format: 'pem' }).toString(),
        publicKey: publicKey.export({ type: 'spki', format: 'der' }),
      }
    }
    return this.#leaf
  }

  #issue(subject: string, publicKey: Buffer, days: number, host?: Hostname): Buffer {
    const serial = randomBytes(16)
    serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40
    const unsigned = unsignedCertificate({
      serial,
      issuer: this.#name,
      subject,
      from: this.#from,
      until: new Date(this.#from.getTime() + days * DAY),
      publicKey,
      issuerKey: this.#caPublic,
      ...(host === undefined ? {} : { host }),
    })
    return signedCertificate(unsigned, sign('sha256', unsigned, this.#caKey))
  }
}
