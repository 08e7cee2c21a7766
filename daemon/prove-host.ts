import type { KeyObject } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { hostname, release } from 'node:os'
import { dirname, join } from 'node:path'
import { type Envelope, seal, unseal } from './audit/envelope.ts'
import { keyOf } from './audit/key-file.ts'
import { loadPublicKey, loadSigner } from './audit/signer.ts'
import type { FeatureName, Features } from './contract/features.ts'
import { openEngine } from './embedded.ts'
import { nativeFile } from './kernel/clone.ts'
import { probeFeatures } from './kernel/features.ts'
import { defaultConfig } from './lib/config.ts'
import { errnoOf, PuzzledError } from './lib/errors.ts'
import { stateDirectory } from './lib/read-config.ts'
import { UndoStack } from './lib/undo.ts'
import { ProfileStore } from './policy/profiles.ts'
import { noChecks, runChecks } from './prove/checks.ts'
import { runMatrix } from './prove/matrix.ts'
import { makeOutside, type Outside } from './prove/outside.ts'
import { held, notVerified, type ProofReport, type ProvenCheck, provenAttacks } from './prove/report.ts'
import { Scene } from './prove/scene.ts'
import { LAYERS, type Layer, without } from './prove/without.ts'

export type { ProofReport } from './prove/report.ts'

const REPORT_TYPE = 'application/vnd.puzzled.proof+json'
/** Nobody's: agents of a proof own nothing on this host. */
const USER = { uid: 64_321, gid: 64_321 }
const ROOT = { uid: 0, gid: 0, groups: [0], name: 'root' }

/**
 * Attacks this host from disposable branches, in a room of its own, with a store of its own: neither the daemon nor its
 * branches nor any file that was there before takes part. The room goes, whatever happens.
 */
export async function proveHost(options: {
  stateDir: string | null
  product: string
}): Promise<{ report: ProofReport; envelope: Envelope }> {
  if (process.geteuid?.() !== 0)
    throw new PuzzledError('not-root', 'A proof starts agents, which needs root', {
      hint: 'sudo puzzlectl prove',
    })
  const undo = new UndoStack()
  try {
    const state = await stateDirectory(options.stateDir)
    const report = await prove(state, options.product, undo)
    const payload = Buffer.from(`${JSON.stringify(report)}\n`)
    const directory = join(state, 'audit')
    await mkdir(directory, { recursive: true, mode: 0o700 })
    return { report, envelope: seal(REPORT_TYPE, payload, await loadSigner(directory)) }
  } finally {
    await undo.unwind()
  }
}

async function prove(state: string, product: string, undo: UndoStack): Promise<ProofReport> {
  const room = await makeRoom(state, undo)
  const program = nativeFile('attack')
  const outside = await makeOutside(join(room, 'outside'), program, USER, undo)
  const { profile } = await new ProfileStore().resolve('offline', {})
  const { targets } = outside
  const features = await probeFeatures({
    stateDirectory: room,
    overrides: process.env.PUZZLED_TEST_FEATURES,
  })
  const planner = without(missingLayers(features))
  const matrix = await runMatrix({ room, profile, user: USER, program, targets, planner })
  const attacks = provenAttacks(matrix, LAYERS)
  const checks = await checkGate(room, await makeWorkplace(undo), outside)
  return {
    version: 1,
    product,
    time: new Date().toISOString(),
    host: { kernel: release(), architecture: process.arch, node: process.version, name: hostname() },
    profile: profile.name,
    layers: LAYERS,
    attacks,
    checks,
    notVerified: notVerified(attacks, checks, Object.values(features)),
    held: held(attacks, checks),
  }
}

/** Those that consist of one feature of the host. */
const FEATURE_OF: Readonly<Partial<Record<Layer, FeatureName>>> = {
  landlock: 'landlock',
  seccomp: 'seccomp',
  network: 'netns',
}

/** A host without a feature is attacked without the layer, also one that is only said to be poorer. */
function missingLayers(features: Features): Layer[] {
  return LAYERS.filter((layer) => {
    const name = FEATURE_OF[layer]
    return name !== undefined && features[name].state === 'missing'
  })
}

/** What agents get of their own would hide what is outside of it, and Landlock lets them write there. */
const AGENTS_OWN = ['/tmp', '/var/tmp', '/run', '/home', '/root', '/dev']

/** Beside the store, on the same filesystem, where everybody may enter. */
async function makeRoom(state: string, undo: UndoStack): Promise<string> {
  const beside = dirname(state)
  const hidden = AGENTS_OWN.some((path) => beside === path || beside.startsWith(`${path}/`))
  const room = await mkdtemp(join(hidden ? '/var/lib' : beside, 'puzzled-prove-'))
  undo.push('remove the room of the proof', () => rm(room, { recursive: true, force: true }))
  await chmod(room, 0o755)
  return room
}

/** Where people keep projects, not where a system keeps its state: the gate holds whatever is done there. */
async function makeWorkplace(undo: UndoStack): Promise<string> {
  const place = await mkdtemp('/var/tmp/puzzled-prove-')
  undo.push('remove the workplace of the proof', () => rm(place, { recursive: true, force: true }))
  await chmod(place, 0o755)
  return place
}

async function checkGate(room: string, workplace: string, outside: Outside): Promise<ProvenCheck[]> {
  const config = { ...defaultConfig(), state_dir: join(room, 'state') }
  try {
    const { engine, release: close } = await openEngine(config, ROOT, false)
    try {
      return await runChecks(new Scene({ engine, outside, room: workplace, user: USER, profile: 'standard' }))
    } finally {
      await close()
    }
  } catch (error) {
    return noChecks(error)
  }
}

/** Before the attacks: nobody should wait for a report that cannot be written. */
export function refuseTaken(path: string): void {
  if (existsSync(path))
    throw new PuzzledError('usage', `"${path}" exists already`, { hint: 'A report is never overwritten.' })
}

export async function writeProof(path: string, envelope: Envelope): Promise<void> {
  try {
    await writeFile(path, `${JSON.stringify(envelope, null, 2)}\n`, { mode: 0o644, flag: 'wx' })
  } catch (cause) {
    throw new PuzzledError('usage', `Cannot write the report to "${path}": ${errnoOf(cause) ?? cause}`, {
      cause,
    })
  }
}

/** The report in a file, if it was signed with this key: that of the store, or the one in `keyFile`. */
export async function readProof(
  path: string,
  options: { stateDir: string | null; keyFile: string | null },
): Promise<ProofReport> {
  const key: KeyObject =
    options.keyFile === null
      ? await loadPublicKey(join(await stateDirectory(options.stateDir), 'audit'))
      : await keyOf(options.keyFile)
  const payload = unseal(await readEnvelope(path), REPORT_TYPE, key)
  if (payload === null)
    throw new PuzzledError('audit-failed', `The signature of "${path}" is wrong`, {
      hint: 'It was changed, or signed on another machine: --key names the public key of that one.',
    })
  return JSON.parse(payload.toString('utf8')) as ProofReport
}

async function readEnvelope(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as unknown
  } catch (cause) {
    throw new PuzzledError('usage', `Cannot read a report from "${path}"`, { cause })
  }
}
