import { PuzzledError } from '../lib/errors.ts'
import type { Ports } from './ports.ts'

/** The commit that a person means: its id, an unambiguous beginning of it, or the branch that it came from. */
export async function findCommit(ports: Pick<Ports, 'committer' | 'store'>, text: string): Promise<string> {
  const commits = await ports.committer.commits()
  if (commits.includes(text)) return text
  const found = text === '' ? [] : commits.filter((commit) => commit.startsWith(text)).sort()
  const [first, second] = found
  if (second !== undefined)
    throw new PuzzledError('branch-ambiguous', `"${text}" could be ${found.slice(0, 5).join(', ')}`, {
      hint: 'Type more of the commit’s id.',
      data: { candidates: found.slice(0, 50) },
    })
  return first ?? commitOfBranch(ports, text)
}

async function commitOfBranch({ store }: Pick<Ports, 'store'>, text: string): Promise<string> {
  const branch = await store.resolve(text).catch((error: unknown) => {
    if (!(error instanceof PuzzledError) || error.code !== 'branch-unknown') throw error
    throw new PuzzledError('branch-unknown', `There is no commit ${JSON.stringify(text)} to revert`, {
      cause: error,
      hint: 'puzzlectl audit trace shows what a branch has committed; retention may have removed it.',
    })
  })
  const { commit } = await store.read(branch)
  if (commit !== null) return commit.id
  throw new PuzzledError('wrong-state', `Branch ${branch} has committed nothing that could be reverted`, {
    data: { branch },
  })
}
