// pure
import type { PathGrant, Profile } from '../contract/profile.ts'
import { PuzzledError } from '../lib/errors.ts'

/**
 * Replaces `~/` by the requester's home. Without a home, optional mounts and path grants below it are left out; a
 * mount that is not optional is an error, because a profile must never silently grant less than it needs or hide less
 * than it says.
 */
export function expandHome(profile: Profile, home: string | undefined): Profile {
  const expand = (path: string): string | undefined => {
    if (!path.startsWith('~/')) return path
    return home === undefined ? undefined : `${home === '/' ? '' : home}${path.slice(1)}`
  }
  const must = (what: string, path: string): string => {
    const expanded = expand(path)
    if (expanded !== undefined) return expanded
    throw new PuzzledError(
      'profile-invalid',
      `Profile "${profile.name}" needs the requester's home for ${what} "${path}"`,
    )
  }
  const grants = (list: readonly PathGrant[]): PathGrant[] =>
    list.flatMap((grant) => {
      const path = expand(grant.path)
      return path === undefined ? [] : [{ ...grant, path }]
    })
  const refusals = (what: string, list: readonly PathGrant[]): PathGrant[] =>
    list.map((grant) => ({ ...grant, path: must(what, grant.path) }))
  const { exec, landlock, gate } = profile
  return {
    ...profile,
    mounts: profile.mounts.flatMap((mount) => {
      const path = mount.optional ? expand(mount.path) : must('the mount', mount.path)
      return path === undefined ? [] : [{ ...mount, path }]
    }),
    exec: {
      allow: exec.allow === 'any' ? 'any' : grants(exec.allow),
      deny: refusals('the refusal', exec.deny),
    },
    landlock: { read: grants(landlock.read), write: grants(landlock.write) },
    network: {
      ...profile.network,
      credentials: profile.network.credentials.map((credential) =>
        credential.source.kind === 'file'
          ? { ...credential, source: { kind: 'file', path: must('the credential', credential.source.path) } }
          : credential,
      ),
    },
    gate: {
      ...gate,
      holdPaths: refusals('the hold rule', gate.holdPaths),
      denyPaths: refusals('the refusal', gate.denyPaths),
    },
  }
}
