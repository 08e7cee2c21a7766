import { execFile } from 'node:child_process'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { CredentialGrant } from '../contract/profile.ts'
import { PuzzledError } from '../lib/errors.ts'
import { Credential } from './credentials.ts'

const MAX_SECRET = 65_536

/** Reads every secret of a profile once, at the start of the branch. One that cannot be read refuses the start. */
export async function loadCredentials(grants: readonly CredentialGrant[]): Promise<readonly Credential[]> {
  return await Promise.all(grants.map(async (grant) => new Credential(grant, await readSecret(grant))))
}

async function readSecret(grant: CredentialGrant): Promise<string> {
  const { source, placeholder } = grant
  const text =
    source.kind === 'file'
      ? await fromFile(source.path)
      : source.kind === 'environment'
        ? process.env[source.name]
        : source.kind === 'systemd'
          ? await fromFile(
              join(process.env.CREDENTIALS_DIRECTORY ?? '/run/credentials/puzzled.service', source.name),
            )
          : await fromCommand(source.argv)
  const secret = text?.replace(/\r?\n$/, '')
  if (secret === undefined || secret.length < 8)
    throw refuse(
      placeholder,
      'it is not set, or has fewer than 8 characters and could not be recognised in an echo',
    )
  // A line break in a header is a second header.
  if (/[\x00-\x1f\x7f]/.test(secret)) throw refuse(placeholder, 'it contains a control character')
  return secret
}

/** A secret that others can read is no secret: the mode is checked on the open file. */
async function fromFile(path: string): Promise<string> {
  const file = await open(path, 'r').catch((cause: unknown) => {
    throw refuse(path, 'the file cannot be opened', cause)
  })
  try {
    const { mode, uid, size } = await file.stat()
    if ((mode & 0o077) !== 0)
      throw refuse(path, `others can read the file (mode ${(mode & 0o777).toString(8)})`)
    if (uid !== 0 && uid !== process.getuid?.()) throw refuse(path, 'the file belongs to another user')
    if (size > MAX_SECRET) throw refuse(path, 'the file is too large for a secret')
    return await file.readFile('utf8')
  } finally {
    await file.close()
  }
}

async function fromCommand(argv: readonly string[]): Promise<string> {
  const [command = '', ...args] = argv
  try {
    const run = promisify(execFile)
    const { stdout } = await run(command, args, { timeout: 10_000, maxBuffer: MAX_SECRET, encoding: 'utf8' })
    return stdout
  } catch {
    // The cause would carry the command's output, which may hold the secret.
    throw refuse(command, 'the command failed or took longer than 10 seconds')
  }
}

const refuse = (name: string, why: string, cause?: unknown): PuzzledError =>
  new PuzzledError('profile-invalid', `Cannot use the credential "${name}": ${why}`, {
    ...(cause === undefined ? {} : { cause }),
    hint: 'chmod 600 the file, or correct its source in the profile',
  })
