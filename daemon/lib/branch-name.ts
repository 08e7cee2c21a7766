// pure
import { PuzzledError } from './errors.ts'

/**
 * Which of the branches a person means by `text`: a whole id, else a name, else the unique beginning of an id. The
 * caller decides which branches are known: an error must not name any that the person may not see.
 */
export function branchNamed(
  text: string,
  known: readonly { readonly id: string; readonly name: string | null }[],
): string {
  if (known.some(({ id }) => id === text)) return text
  const named = known.filter(({ name }) => name === text)
  const found = (
    named.length > 0 ? named : text === '' ? [] : known.filter(({ id }) => id.startsWith(text))
  ).map(({ id }) => id)
  const [first, second] = found
  if (first === undefined) throw unknownBranch(text)
  if (second === undefined) return first
  throw new PuzzledError('branch-ambiguous', `"${text}" could be ${found.slice(0, 5).join(', ')}`, {
    hint: 'Type more of the id.',
    data: { candidates: found.slice(0, 50) },
  })
}

export const unknownBranch = (text: string): PuzzledError =>
  new PuzzledError('branch-unknown', `There is no branch ${JSON.stringify(text.slice(0, 200))}`, {
    hint: 'puzzlectl ls --all shows all branches.',
  })
