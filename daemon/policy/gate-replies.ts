// pure
import { z } from 'zod'
import type { ContentScan } from './content-scan.ts'

/**
 * What a policy worker may say, and nothing else. The worker reads what agents wrote, so it counts as theirs: its words
 * are data that is judged here, and a word out of this grammar ends it. Verdicts themselves are judged in `verdict.ts`.
 */

const MAX_WORDS = 10_000
const MAX_FINDINGS = 20

const failure = z.strictObject({ failure: z.string().max(MAX_WORDS) })
const result = z.union([z.strictObject({ output: z.unknown() }), failure])
const finding = z.strictObject({ rule: z.string().min(1).max(200), message: z.string().max(MAX_WORDS) })
const scan = z.strictObject({
  examined: z.boolean(),
  reason: z.string().max(MAX_WORDS).optional(),
  binary: z.boolean(),
  native: z.boolean(),
  findings: z.array(finding).max(MAX_FINDINGS),
})

const id = z.int().min(1)
const reply = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('ready') }),
  z.strictObject({ kind: z.literal('unfit'), reason: z.string().max(MAX_WORDS) }),
  z.strictObject({ kind: z.literal('evaluated'), id, results: z.array(result) }),
  z.strictObject({ kind: z.literal('scanned'), id, scans: z.array(scan) }),
])

export type RawResult = { output: unknown } | { failure: string }
export type GateReply =
  | { kind: 'ready' }
  | { kind: 'unfit'; reason: string }
  | { kind: 'evaluated'; id: number; results: RawResult[] }
  | { kind: 'scanned'; id: number; scans: ContentScan[] }

/** What the worker was asked last and has not answered yet. */
export type Question = { kind: 'start' } | { kind: 'evaluate' | 'scan'; id: number; answers: number }

/** The reply, if it is one to this question. Throws the reason for which it is none. */
export function readReply(text: string, question: Question | null): GateReply {
  const said = parse(text)
  if (question === null) throw new Error(`an answer that nobody asked for ("${said.kind}")`)
  if (said.kind === 'ready' || said.kind === 'unfit') {
    if (question.kind !== 'start') throw new Error(`"${said.kind}" in place of an answer`)
    return said
  }
  if (question.kind === 'start') throw new Error(`"${said.kind}" before it was ready`)
  if (said.kind !== (question.kind === 'evaluate' ? 'evaluated' : 'scanned'))
    throw new Error(`"${said.kind}" as the answer to "${question.kind}"`)
  if (said.id !== question.id) throw new Error(`the answer to question ${said.id}, asked was ${question.id}`)
  const answers = said.kind === 'evaluated' ? said.results.length : said.scans.length
  if (answers !== question.answers) throw new Error(`${answers} answers, asked were ${question.answers}`)
  return said
}

function parse(text: string): GateReply {
  let said: unknown
  try {
    said = JSON.parse(text)
  } catch {
    throw new Error('a message that is no JSON')
  }
  const checked = reply.safeParse(said)
  if (checked.success) return checked.data as GateReply
  const issue = checked.error.issues[0]
  throw new Error(`a message that is malformed at "${issue?.path.join('.') ?? ''}": ${issue?.message ?? ''}`)
}
