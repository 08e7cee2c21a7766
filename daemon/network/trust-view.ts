import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { NetworkProfile } from '../contract/profile.ts'
import { BUNDLE_PATHS, BUNDLE_REMEDY } from '../contract/trust.ts'
import { PuzzledError } from '../lib/errors.ts'
import { networkEnvironment, RESOLV_CONF } from './agent-view.ts'
import { JAVA_STORES, javaStore } from './java-store.ts'

/** What makes an agent find the gate and trust it. */
export interface TrustView {
  /** To be set for the agent. */
  readonly environment: Readonly<Record<string, string>>
  /** What the agent sees at these paths: the bundle of authorities, the resolver's configuration. */
  readonly files: readonly { readonly path: string; readonly bytes: Uint8Array }[]
}

export const NO_VIEW: TrustView = { environment: {}, files: [] }

/**
 * The branch's authority is mounted over every bundle that the host has. A host without one has no such place; a profile
 * whose hosts are reached by TLS is refused there, because every program inside would refuse every connection.
 */
export async function trustView(
  certificate: string,
  network: NetworkProfile,
  places: readonly string[] = BUNDLE_PATHS,
): Promise<TrustView> {
  const found = places.filter((path) => existsSync(path))
  const [bundle = ''] = found
  if (found.length === 0 && endsTls(network))
    throw new PuzzledError(
      'feature-missing',
      'This host has no bundle of certificate authorities, so nothing in the branch could trust the gate',
      { hint: `${BUNDLE_REMEDY}; or give the branch no network, or rules for port 80 only` },
    )
  const system = found.length === 0 ? '' : await readFile(bundle, 'utf8')
  const text = `${system.trimEnd()}\n${certificate}`
  const java = JAVA_STORES.filter((path) => existsSync(path))
  const store = java.length === 0 ? undefined : javaStore(text)
  return {
    environment: networkEnvironment(bundle),
    files: [
      ...found.map((path) => ({ path, bytes: Buffer.from(text) })),
      ...(store === undefined ? [] : java.map((path) => ({ path, bytes: store }))),
      { path: '/etc/resolv.conf', bytes: Buffer.from(RESOLV_CONF) },
    ],
  }
}

/** Whether a certificate of the branch would ever be shown. Port 80 is never TLS. */
const endsTls = ({ mode, rules }: NetworkProfile): boolean =>
  mode === 'open-read' ||
  (mode === 'gated' &&
    rules.some(
      (rule) => rule.class !== 'deny' && rule.tls === 'intercept' && rule.ports.some((port) => port !== 80),
    ))
