import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto'
import { type FileHandle, open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { errnoOf, PuzzledError } from '../lib/errors.ts'
import { failpoint } from '../lib/failpoint.ts'

/** Signs tree heads with a key that never leaves the store; the public half lies beside it for whoever verifies. */
export class HeadSigner {
  readonly #key: KeyObject
  readonly publicKey: KeyObject

  constructor(key: KeyObject) {
    this.#key = key
    this.publicKey = createPublicKey(key)
  }

  sign(size: number, root: Uint8Array): string {
    return this.signBytes(headBytes(size, root))
  }

  /** Whatever is signed begins with the name of its kind, so that no signature can stand for something else. */
  signBytes(bytes: Uint8Array): string {
    return sign(null, bytes, this.#key).toString('base64')
  }
}

export const verifiesHead = (key: KeyObject, size: number, root: Uint8Array, signature: string): boolean =>
  verify(null, headBytes(size, root), key, Buffer.from(signature, 'base64'))

const headBytes = (size: number, root: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from(`puzzled audit tree head v1\n${size}\n`), root])

/** Reads the key of the log, or makes it on first use. A key that others can read is refused, not repaired. */
export async function loadSigner(directory: string): Promise<HeadSigner> {
  const path = join(directory, 'audit.key')
  return new HeadSigner(createPrivateKey((await readKey(path)) ?? (await createKey(directory, path))))
}

async function readKey(path: string): Promise<string | null> {
  let handle: FileHandle
  try {
    handle = await open(path, 'r')
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null
    throw error
  }
  try {
    const mode = (await handle.stat()).mode & 0o777
    if ((mode & 0o077) === 0) return await handle.readFile('utf8')
    throw new PuzzledError(
      'audit-failed',
      `The audit key "${path}" can be read by others (mode ${mode.toString(8)})`,
      {
        hint: `If nobody copied it: chmod 600 ${path}`,
      },
    )
  } finally {
    await handle.close()
  }
}

async function createKey(directory: string, path: string): Promise<string> {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  // The public half first, and overwriting: a crash in between leaves no private key, so both are made again.
  const spki = publicKey.export({ type: 'spki', format: 'pem' }).toString()
  await writeDurably(join(directory, 'audit.pub'), spki, 0o644)
  failpoint('audit.key-public')
  await writeDurably(path, pem, 0o600)
  failpoint('audit.key-private')
  return pem
}

/** Whole or not there: half a key would lock everybody out of the log. */
async function writeDurably(path: string, text: string, mode: number): Promise<void> {
  const handle = await open(`${path}.new`, 'w', mode)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
  failpoint('audit.key-written')
  await rename(`${path}.new`, path)
}

export async function loadPublicKey(directory: string): Promise<KeyObject> {
  return createPublicKey(await readFile(join(directory, 'audit.pub'), 'utf8'))
}
