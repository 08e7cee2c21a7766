import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { BranchRecord } from './contract/branch.ts'
import type { Verdict } from './contract/verdict.ts'
import { packageRoot } from './lib/assets.ts'
import { PuzzledError } from './lib/errors.ts'
import { stateDirectory } from './lib/read-config.ts'
import { ACTION_POLICY_FILE } from './policy/action-judge.ts'
import { parseActionPolicy } from './policy/action-policy.ts'
import { type HandWritten, parseChangesetFile } from './policy/changeset-file.ts'
import type { ContentReader } from './policy/contents.ts'
import { DecisionLog } from './policy/decision-log.ts'
import { PolicyGate } from './policy/gate.ts'
import { compileRego, testRego } from './policy/opa.ts'
import { type PolicySource, policySources, policyVersion } from './policy/policy-set.ts'
import { ProfileStore } from './policy/profiles.ts'
import { readRecords } from './policy/read-records.ts'
import { type Replayed, replay } from './policy/replay.ts'
import { nearestRule, type RuleText, ruleText } from './policy/rules.ts'

/** What `puzzlectl policy` does. Needs no rights and changes nothing but the file that `build` writes. */

export { testRego }

const sources = (files: readonly string[]) => async (): Promise<PolicySource[]> => policySources({ files })

async function withGate<Result>(
  files: readonly string[],
  contents: ContentReader | null,
  work: (gate: PolicyGate) => Promise<Result>,
): Promise<Result> {
  const gate = new PolicyGate({ sources: sources(files), contents, limits: { workers: 1 } })
  try {
    return await work(gate)
  } finally {
    await gate.close()
  }
}

/** Every policy that takes part here, tried out, and the version of the whole. */
export async function listPolicies(files: readonly string[]) {
  const listed = await policySources({ files })
  const policies = await withGate(files, null, (gate) => gate.warm())
  return {
    version: policyVersion(policies),
    policies: policies.map(({ name, sha256 }) => ({
      name,
      sha256,
      file: listed.find((source) => source.name === name)?.file ?? '',
    })),
    actions: await actionPolicyState(),
    vectors: Object.keys(await vectors()).length,
  }
}

async function actionPolicyState(): Promise<{ file: string; state: string }> {
  const file = ACTION_POLICY_FILE
  try {
    const { rules } = parseActionPolicy(await readFile(file, 'utf8'), file)
    return { file, state: `${rules.length} rules` }
  } catch (error) {
    if (error instanceof PuzzledError)
      return { file, state: `malformed, everything is denied: ${error.message}` }
    return { file, state: 'none' }
  }
}

interface Vector {
  severity: string
  why: string
}

async function vectors(): Promise<Record<string, Vector>> {
  return JSON.parse(await readFile(join(packageRoot(), 'policies/dist/vectors.json'), 'utf8'))
}

/** What a rule means. */
export async function explainRule(rule: string): Promise<RuleText> {
  const [family, id = ''] = rule.split('/')
  const catalogue = await vectors()
  if (family === 'vector' && Object.hasOwn(catalogue, id)) {
    const { severity = '', why = '', ...places } = catalogue[id] ?? {}
    const where = Object.entries(places).map(([key, list]) => `${key}: ${[list].flat().join(' ')}`)
    const weight = severity === 'critical' ? 'deny' : severity === 'low' ? 'warn' : 'hold'
    return { weight, means: `Something runs it or obeys it: ${why}.`, help: where.join('\n') }
  }
  const found = ruleText(rule)
  if (found !== undefined) return found
  const near = nearestRule(rule, Object.keys(catalogue))
  throw new PuzzledError('usage', `No rule is called ${JSON.stringify(rule)}`, {
    hint: near === undefined ? 'docs/policy.md lists them.' : `Did you mean "${near}"?`,
  })
}

export interface EvalRequest {
  changeset: string
  policies: readonly string[]
  profile: string
}

/** Judges a changeset from a file: written by hand, or an input document as the decision log keeps it. */
export async function evalChangeset({
  changeset: file,
  policies,
  profile: name,
}: EvalRequest): Promise<Verdict> {
  const bytes = await readInput(file)
  const recorded = recordedInput(bytes)
  if (recorded !== null) return withGate(policies, null, (gate) => gate.evaluateInput(bytes, recorded))
  const written = parseChangesetFile(bytes.toString('utf8'), file)
  const { profile, sha256 } = await new ProfileStore().resolve(name, { home: '/home/user' })
  const record = recordFor(written, { name: profile.name, sha256, resolved: profile })
  return withGate(policies, contentsOf(written), (gate) => gate.evaluate(record, written.changeset))
}

/** Only what the file says can be examined; a file that says no content at all is judged by names and modes. */
function contentsOf({ changeset, contents }: HandWritten): ContentReader | null {
  if (contents.size === 0) return null
  const numbers = new Map(changeset.changes.map((change, at) => [change, at]))
  return async (_record, change, which, limit) => {
    const known = contents.get(numbers.get(change) ?? -1)
    const text = which === 'new' ? known?.content : known?.old
    return text === undefined ? null : Buffer.from(text).subarray(0, limit)
  }
}

async function readInput(file: string): Promise<Buffer> {
  const bytes = await readFile(file)
  if (bytes.readUInt16BE(0) !== 0x1f8b) return bytes
  return promisify(gunzip)(bytes, { maxOutputLength: 256 * 1024 * 1024 })
}

/** An input document says its digest; anything else is for people. */
function recordedInput(bytes: Buffer): { digest: string; shadow: boolean } | null {
  if (!bytes.subarray(0, 12).equals(Buffer.from('{"changes":['))) return null
  try {
    const document = JSON.parse(bytes.toString('utf8')) as {
      digest?: unknown
      index?: unknown
      branch?: { enforce?: unknown }
    }
    if (typeof document.digest !== 'string' || document.index === undefined) return null
    return { digest: document.digest, shadow: document.branch?.enforce === 'shadow' }
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
}

function recordFor({ changeset, requester }: HandWritten, profile: BranchRecord['profile']): BranchRecord {
  const now = new Date().toISOString()
  return {
    version: 1,
    id: '2222222222',
    name: null,
    state: 'reviewing',
    reason: 'policy eval',
    createdAt: now,
    updatedAt: now,
    requester: { ...requester, groups: [], name: '' },
    bases: changeset.bases.map((path) => ({ path, dev: 0, filesystem: '', nested: [] })),
    profile,
    command: ['policy', 'eval'],
    cwd: '/',
    afterwards: 'hold',
    layers: 1,
    parent: null,
    exit: null,
    grants: [],
    digest: null,
    verdict: null,
    commit: null,
    extensions: {},
  }
}

/** Compiles Rego, and tries the result before it replaces anything. */
export async function buildPolicy(
  paths: readonly string[],
  entrypoint: string,
  output: string,
): Promise<string> {
  const wasm = await compileRego(paths, entrypoint)
  const directory = await mkdtemp(join(tmpdir(), 'puzzled-build-'))
  try {
    const trial = join(directory, basename(output))
    await writeFile(trial, wasm)
    const [, own] = await withGate([trial], null, (gate) => gate.warm())
    await writeFile(output, wasm)
    return own?.sha256 ?? ''
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** Evaluates the policies of today (and more) on what was decided since then. */
export async function replayDecisions(request: {
  since: Date
  policies: readonly string[]
  stateDir: string | null
}): Promise<Replayed[]> {
  const state = await stateDirectory(request.stateDir)
  const log = new DecisionLog(readRecords, join(state, 'policy/decisions'))
  return withGate(request.policies, null, async (gate) => {
    const rows: Replayed[] = []
    for await (const row of replay(log, request.since, (input, facts) =>
      gate.evaluateInput(input, { digest: facts.digest, shadow: facts.shadow }),
    ))
      rows.push(row)
    return rows
  })
}
