import { PuzzledError } from '../lib/errors.ts'
import type { ActionJudge } from './action-judge.ts'
import type { PolicyGate } from './gate.ts'
import { ProfileStore } from './profiles.ts'

export interface Deciders {
  gate: PolicyGate
  judge: ActionJudge
}

/**
 * Everything that decides, read again: all of it, or nothing. First every part is read and tried, and only when the
 * last one was found good is the first one put in force. Profiles are read at each fork anyway; a bad one is told here.
 */
export async function reloadPolicies({ gate, judge }: Deciders): Promise<void> {
  const { problems } = await readProfiles()
  if (problems.length > 0) throw new PuzzledError('profile-invalid', problems.join('\n'))
  const policies = await gate.prepare()
  try {
    const putActions = await judge.prepare()
    putActions()
  } catch (error) {
    await policies.abandon()
    throw error
  }
  await policies.apply()
}

/** What is wrong with what would be put in force; empty when nothing is. Nothing is put in force. */
export async function checkPolicies({ gate, judge }: Deciders): Promise<readonly string[]> {
  const { problems } = await readProfiles()
  const tries = [gate.prepare().then((policies) => policies.abandon()), judge.prepare()]
  const failed = (await Promise.allSettled(tries)).flatMap((one) =>
    one.status === 'rejected' ? [one.reason instanceof Error ? one.reason.message : String(one.reason)] : [],
  )
  return [...problems, ...failed]
}

async function readProfiles(): Promise<{ problems: string[] }> {
  const listed = await new ProfileStore().list()
  return { problems: listed.flatMap(({ problem }) => problem ?? []) }
}
