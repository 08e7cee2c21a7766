import { createPublicKey, type KeyObject } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { PuzzledError } from '../lib/errors.ts'

/** A public key that an auditor kept elsewhere. */
export async function keyOf(path: string): Promise<KeyObject> {
  try {
    const key = createPublicKey(await readFile(path, 'utf8'))
    if (key.asymmetricKeyType !== 'ed25519') throw new TypeError(`a key for ${key.asymmetricKeyType}`)
    return key
  } catch (cause) {
    throw new PuzzledError('usage', `Cannot read a public key from "${path}"`, {
      cause,
      hint: 'puzzlectl audit key prints it.',
    })
  }
}
