import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { z } from 'zod'
import { PuzzledError } from '../lib/errors.ts'
import type { GateDecision } from './gate.ts'
import type { RecordFiles } from './record-files.ts'

const severity = z.enum(['info', 'low', 'medium', 'high', 'critical'])

/** One line of `decisions.jsonl`. Findings are kept by rule; their texts are in the branch's own record. */
export const decisionLine = z.strictObject({
  version: z.literal(1),
  at: z.iso.datetime(),
  branch: z.string(),
  digest: z.string(),
  /** SHA-256 of the input document, which lies beside the log; null when none could be made. */
  input: z.string().nullable(),
  verdict: z.enum(['allow', 'hold', 'deny']),
  tier: z.string(),
  shadow: z.boolean(),
  policies: z.array(z.strictObject({ name: z.string(), sha256: z.string() })),
  findings: z.array(z.strictObject({ rule: z.string(), severity, path: z.string().optional() })),
  durationMs: z.number(),
})

export type DecisionLine = z.output<typeof decisionLine>

/** Of a changeset with thousands of findings the first tell what it was. */
const MAX_FINDINGS = 200

const pack = promisify(gzip)
const unpack = promisify(gunzip)
/** An input document of the largest changeset that is judged stays below this. */
const MAX_INPUT = 256 * 1024 * 1024

/** Every decision of the gate, and the document that it was made on, so that another policy can be tried on it. */
export class DecisionLog {
  readonly #files: RecordFiles
  readonly #directory: string

  /** `directory` and `directory/inputs` exist. */
  constructor(files: RecordFiles, directory: string) {
    this.#files = files
    this.#directory = directory
  }

  /** Durable before it resolves: input first, so that a line never refers to nothing. */
  async record({ branch, at, verdict, input }: GateDecision): Promise<void> {
    const sha256 = input === null ? null : createHash('sha256').update(input).digest('hex')
    if (input !== null && sha256 !== null) {
      const path = this.#inputPath(sha256)
      if ((await this.#files.read(path)) === null)
        await this.#files.writeRecord(path, await pack(input, { level: 1 }))
    }
    const findings = [...verdict.deny, ...verdict.hold, ...verdict.warn].slice(0, MAX_FINDINGS)
    const line: DecisionLine = {
      version: 1,
      at,
      branch,
      digest: verdict.digest,
      input: sha256,
      verdict: verdict.kind,
      tier: verdict.tier,
      shadow: verdict.shadow,
      policies: verdict.policies.map(({ name, sha256: digest }) => ({ name, sha256: digest })),
      findings: findings.map(({ rule, severity: weight, path }) => ({
        rule,
        severity: weight,
        ...(path === undefined ? {} : { path }),
      })),
      durationMs: Math.round(verdict.durationMs * 1000) / 1000,
    }
    await this.#files.append(
      join(this.#directory, 'decisions.jsonl'),
      Buffer.from(`${JSON.stringify(line)}\n`),
    )
  }

  /** Decisions since then, oldest first. A torn last line is absent; any other damage is an error. */
  async since(time: Date): Promise<DecisionLine[]> {
    const path = join(this.#directory, 'decisions.jsonl')
    const text = (await this.#files.read(path))?.toString('utf8') ?? ''
    const lines = text.split('\n')
    // What stands behind the last line break was never finished.
    lines.pop()
    return lines
      .map((line, index) => readLine(line, `${path}:${index + 1}`))
      .filter(({ at }) => Date.parse(at) >= time.getTime())
  }

  /** The document of a decision, checked against its digest; null when it was removed by retention. */
  async input(sha256: string): Promise<Uint8Array | null> {
    const packed = await this.#files.read(this.#inputPath(sha256))
    if (packed === null) return null
    const input = await unpack(packed, { maxOutputLength: MAX_INPUT })
    if (createHash('sha256').update(input).digest('hex') !== sha256)
      throw new PuzzledError('record-damaged', `Input document ${sha256} is not what its digest says`)
    return input
  }

  #inputPath(sha256: string): string {
    if (!/^[0-9a-f]{64}$/.test(sha256)) throw new PuzzledError('record-damaged', 'A digest is malformed')
    return join(this.#directory, 'inputs', `${sha256}.json.gz`)
  }
}

function readLine(line: string, place: string): DecisionLine {
  try {
    return decisionLine.parse(JSON.parse(line))
  } catch (error) {
    throw new PuzzledError('record-damaged', `${place}: the decision cannot be understood`, { cause: error })
  }
}
