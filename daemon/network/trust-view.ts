import { existsSync } from 'node:fs'
import type { NetworkProfile } from '../contract/profile.ts'
import { BUNDLE_PATHS, BUNDLE_REMEDY } from '../contract/trust.ts'
import { PuzzledError } from '../lib/errors.ts'
import { SteadyFile } from '../lib/steady-file.ts'
import { networkEnvironment, RESOLV_CONF } from './agent-view.ts'
import { certificatesOf, JAVA_STORES, javaStore } from './java-store.ts'

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
  const system = found.length === 0 ? NO_BUNDLE : await bundleAt(bundle).read()
  const bytes = Buffer.from(`${system.text}\n${certificate}`)
  const java = JAVA_STORES.filter((path) => existsSync(path))
  const store =
    java.length === 0 ? undefined : javaStore([...system.certificates(), ...certificatesOf(certificate)])
  return {
    environment: networkEnvironment(bundle),
    files: [
      ...found.map((path) => ({ path, bytes })),
      ...(store === undefined ? [] : java.map((path) => ({ path, bytes: store }))),
      { path: '/etc/resolv.conf', bytes: Buffer.from(RESOLV_CONF) },
    ],
  }
}

interface Bundle {
  readonly text: string
  certificates(): readonly Buffer[]
}

const NO_BUNDLE: Bundle = { text: '', certificates: () => [] }

/** A host has one or two of these; every branch gets what is in them. */
const bundles = new Map<string, SteadyFile<Bundle>>()

function bundleAt(path: string): SteadyFile<Bundle> {
  const known = bundles.get(path) ?? new SteadyFile(path, understandBundle)
  bundles.set(path, known)
  return known
}

/** Most hosts have no Java. */
function understandBundle(text: string): Bundle {
  let decoded: Buffer[] | undefined
  return {
    text: text.trimEnd(),
    certificates: () => {
      decoded ??= certificatesOf(text)
      return decoded
    },
  }
}

/** Whether a certificate of the branch would ever be shown. Port 80 is never TLS. */
const endsTls = ({ mode, rules }: NetworkProfile): boolean =>
  mode === 'open-read' ||
  (mode === 'gated' &&
    rules.some(
      (rule) => rule.class !== 'deny' && rule.tls === 'intercept' && rule.ports.some((port) => port !== 80),
    ))
