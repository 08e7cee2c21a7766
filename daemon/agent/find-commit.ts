import type { Requester } from '../contract/branch.ts'
import { branchNamed } from '../lib/branch-name.ts'
import { PuzzledError } from '../lib/errors.ts'
import type { Ports } from './ports.ts'

/**
 * The commit that a person means: its id, an unambiguous beginning of it, or the branch that it came from. Whole ids are
 * found whoever asks (the revert itself refuses those of others); what is guessed from is the requester's own.
 */
export async function findCommit(
  ports: Pick<Ports, 'committer' | 'store'>,
  text: string,
  requester: Requester,
): Promise<string> {
  const commits = await ports.committer.commits()
  if (commits.includes(text)) return text
  const own = requester.uid === 0 ? null : await commitsOf(ports, requester)
  const found =
    text === ''
      ? []
      : commits.filter((commit) => commit.startsWith(text) && own?.has(commit) !== false).sort()
  const [first, second] = found
  if (second !== undefined)
    throw new PuzzledError('branch-ambiguous', `"${text}" could be ${found.slice(0, 5).join(', ')}`, {
      hint: 'Type more of the commit’s id.',
      data: { candidates: found.slice(0, 50) },
    })
  return first ?? commitOfBranch(ports, text, requester)
}

async function commitsOf({ store }: Pick<Ports, 'store'>, { uid }: Requester): Promise<Set<string>> {
  const own = (await store.list()).filter((record) => record.requester.uid === uid)
  return new Set(own.flatMap(({ commit }) => commit?.id ?? []))
}

async function commitOfBranch(
  { store }: Pick<Ports, 'store'>,
  text: string,
  { uid }: Requester,
): Promise<string> {
  const known = (await store.list()).filter((record) => uid === 0 || record.requester.uid === uid)
  const branch = branchOrNothing(text, known)
  const { commit } = await store.read(branch)
  if (commit !== null) return commit.id
  throw new PuzzledError('wrong-state', `Branch ${branch} has committed nothing that could be reverted`, {
    hint: `What it would change: puzzlectl diff ${branch}; what happened to it: puzzlectl show ${branch}`,
    data: { branch },
  })
}

function branchOrNothing(text: string, known: Parameters<typeof branchNamed>[1]): string {
  try {
    return branchNamed(text, known)
  } catch (error) {
    if (!(error instanceof PuzzledError) || error.code !== 'branch-unknown') throw error
    throw new PuzzledError(
      'branch-unknown',
      `There is no commit ${JSON.stringify(text.slice(0, 200))} to revert`,
      {
        cause: error,
        hint: 'puzzlectl audit trace shows what a branch has committed; retention may have removed it.',
      },
    )
  }
}
