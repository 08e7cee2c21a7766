import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomUUID,
  sign,
  verify,
} from 'node:crypto'
import { existsSync } from 'node:fs'
import { type FileHandle, link, open, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { errnoOf, PuzzledError } from '../lib/errors.ts'
import { failpoint } from '../lib/failpoint.ts'
import { listSegments } from './segments.ts'

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

/**
 * Reads the key of the log, or makes it on first use. A key that others can read is refused, not repaired; so is one that is
 * gone or another one while there are records: heads would not fit any more, and the old public half would be lost.
 */
export async function loadSigner(directory: string): Promise<HeadSigner> {
  const path = join(directory, 'audit.key')
  await removeLeftovers(directory)
  let pem = await readKey(path)
  if (pem === null) {
    if ((await listSegments(directory)).length > 0)
      throw new PuzzledError('audit-failed', `The audit key "${path}" is gone, and there are records`, {
        hint: `Put it back; or keep this log and begin a new one: mv ${directory} ${directory}.damaged`,
      })
    pem = await createKey(path)
  }
  const signer = signerOf(path, pem)
  await keepPublicKey(join(directory, 'audit.pub'), signer.publicKey)
  return signer
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

/** The first of those who come at the same time makes it; the others take that one. */
async function createKey(path: string): Promise<string> {
  const pem = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  if (await placeDurably(path, pem, 0o600)) return pem
  return readFile(path, 'utf8')
}

/** Derived from the private one, so a crash between the two leaves nothing that the next start does not make good. */
async function keepPublicKey(path: string, key: KeyObject): Promise<void> {
  const spki = key.export({ type: 'spki', format: 'pem' }).toString()
  const known = await readFile(path, 'utf8').catch((error: unknown) => {
    if (errnoOf(error) === 'ENOENT') return null
    throw error
  })
  if (known === spki) return
  if (known === null && (await placeDurably(path, spki, 0o644))) return
  if (known === null && (await readFile(path, 'utf8')) === spki) return
  throw new PuzzledError('audit-failed', `The public key "${path}" is not that of the audit key beside it`, {
    hint: 'One of the two was replaced. Compare with the copy that is kept elsewhere, and put the right one back.',
  })
}

/** Whole or not there: half a key would lock everybody out of the log. False: somebody was quicker. */
async function placeDurably(path: string, text: string, mode: number): Promise<boolean> {
  const own = `${path}.${process.pid}.${randomUUID()}`
  const handle = await open(own, 'wx', mode)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
  failpoint('audit.key-written')
  try {
    await link(own, path)
    failpoint('audit.key-placed')
    return true
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false
    throw error
  } finally {
    await rm(own, { force: true })
  }
}

/** What one that was killed meanwhile did not remove; whoever lives is not disturbed. */
async function removeLeftovers(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const pid = /^audit\.(?:key|pub)\.(\d+)\./.exec(name)?.[1]
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) await rm(join(directory, name), { force: true })
  }
}

export async function loadPublicKey(directory: string): Promise<KeyObject> {
  const path = join(directory, 'audit.pub')
  const pem = await readFile(path, 'utf8').catch((error: unknown) => {
    if (errnoOf(error) !== 'ENOENT' || !existsSync(directory)) throw error
    throw new PuzzledError('audit-failed', `The public key "${path}" is gone`, {
      hint: 'The next start of the daemon writes it again. --key names a copy that is kept elsewhere.',
    })
  })
  try {
    return createPublicKey(pem)
  } catch (cause) {
    throw new PuzzledError('audit-failed', `The public key "${path}" is damaged`, { cause })
  }
}

function signerOf(path: string, pem: string): HeadSigner {
  try {
    return new HeadSigner(createPrivateKey(pem))
  } catch (cause) {
    throw new PuzzledError('audit-failed', `The audit key "${path}" is damaged`, { cause })
  }
}
