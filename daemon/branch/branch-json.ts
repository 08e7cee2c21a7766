// pure
import type { BranchRecord } from '../contract/branch.ts'
import { BRANCH_STATES } from '../contract/states.ts'
import { PuzzledError } from '../lib/errors.ts'

export const RECORD_VERSION = 1

export const encodeRecord = (record: BranchRecord): Buffer =>
  Buffer.from(`${JSON.stringify(record, null, 2)}\n`)

const KEYS = [
  'name',
  'reason',
  'createdAt',
  'updatedAt',
  'requester',
  'bases',
  'profile',
  'command',
  'cwd',
  'afterwards',
  'layers',
  'parent',
  'exit',
  'grants',
  'digest',
  'verdict',
  'commit',
  'extensions',
] as const satisfies readonly (keyof BranchRecord)[]

/** Throws `record-damaged` or `state-newer`; half a record is none, and nothing is guessed. */
export function decodeRecord(id: string, bytes: Buffer): BranchRecord {
  let value: unknown
  try {
    value = JSON.parse(bytes.toString('utf8'))
  } catch (cause) {
    throw damaged(id, 'it is not JSON', cause)
  }
  if (typeof value !== 'object' || value === null) throw damaged(id, 'it is not an object')
  const record = value as Partial<BranchRecord> & { version?: unknown }
  if (typeof record.version !== 'number') throw damaged(id, 'it has no version')
  if (record.version > RECORD_VERSION)
    throw new PuzzledError('state-newer', `The record of branch ${id} has version ${record.version}`, {
      hint: 'A newer puzzled wrote it. Use that one.',
    })
  if (record.id !== id) throw damaged(id, `it says that it is branch ${JSON.stringify(record.id)}`)
  if (!(BRANCH_STATES as readonly unknown[]).includes(record.state))
    throw damaged(id, `its state is ${JSON.stringify(record.state)}`)
  const missing = KEYS.filter((key) => record[key] === undefined)
  if (missing.length > 0) throw damaged(id, `it lacks ${missing.join(', ')}`)
  return value as BranchRecord
}

const damaged = (id: string, why: string, cause?: unknown): PuzzledError =>
  new PuzzledError('record-damaged', `The record of branch ${id} is damaged: ${why}`, {
    cause,
    hint: 'It was kept as it is. See docs/operations.md, "A record is damaged".',
    data: { branch: id },
  })
