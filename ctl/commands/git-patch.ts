import { showBytes } from '../../daemon/contract/bytes.ts'
import { type Change, type Changeset, isEcho } from '../../daemon/contract/changeset.ts'
import type { EngineReader } from '../../daemon/contract/engine.ts'
import { exitStatusOf } from '../../daemon/contract/errors.ts'
import { openPager } from '../pager.ts'
import { tellProgress, withProgress } from '../progress.ts'
import { pathText } from '../render/changes.ts'
import { gitPatch, hasBytes, TOO_LARGE } from '../render/git-patch.ts'
import { visibleLine, visibleText } from '../render/visible.ts'
import type { VerbContext } from '../verb.ts'

/** Of one side; it is what the daemon hands out at once. */
const MOST_BYTES = 16 << 20
/** Of what is left out for one reason so many are named, and the others counted. */
const MOST_NAMED = 5

/** Prints a patch for programs, with the bytes as they are; a person at a terminal sees the same made harmless. */
export async function printGitPatch(
  context: VerbContext,
  engine: EngineReader,
  id: string,
  changeset: Changeset,
): Promise<number> {
  const left = new Map<string, string[]>()
  const pager = openPager(context)
  const harmless = process.stdout.isTTY === true
  const print = async (text: string): Promise<void> => {
    const bytes = Buffer.from(text, 'latin1')
    await pager.print(harmless ? visibleText(showBytes(bytes)) : bytes)
  }
  const changes = changeset.changes.filter((change) => !isEcho(change))
  const filled = new Set(changes.filter((change) => change.new?.type !== 'dir').flatMap(foldersOf))
  const work = async (): Promise<void> => {
    for (const [done, change] of changes.entries()) {
      tellProgress(done, changes.length)
      const wanted = hasBytes(change.old) || hasBytes(change.new)
      const content =
        wanted && change.findings.length === 0
          ? await engine.content(id, change.base, change.path, MOST_BYTES)
          : null
      const patch = gitPatch(pathOf(changeset, change), change, content)
      if (patch.left !== null && !filled.has(keyOf(change)))
        left.set(patch.left, [...(left.get(patch.left) ?? []), pathText(changeset, change)])
      if (patch.text !== '') await print(patch.text)
    }
  }
  try {
    await (harmless ? work() : withProgress('comparing', work))
  } finally {
    await pager.close()
  }
  for (const sentence of leftSentences(left, changeset.requests.length)) await context.printError(sentence)
  return left.has(TOO_LARGE) ? exitStatusOf('too-large') : 0
}

/** Everything that a change lies in: git makes those by itself. */
function foldersOf(change: Change): string[] {
  const parts = keyOf(change).split('/')
  return parts.map((_, length) => parts.slice(0, length).join('/')).slice(1)
}

const keyOf = ({ base, path }: Change): string => `${base}:${Buffer.from(path).toString('latin1')}`

/** Over several bases it is the whole path, which git apply at the root understands. */
const pathOf = ({ bases }: Changeset, { base, path }: Change): Uint8Array =>
  bases.length === 1 ? path : Buffer.concat([Buffer.from(`${(bases[base] ?? '').slice(1)}/`), path])

function leftSentences(left: ReadonlyMap<string, readonly string[]>, requests: number): string[] {
  const sentences = [...left].map(([why, paths]) => {
    const named = paths.slice(0, MOST_NAMED).join(', ')
    const others = paths.length > MOST_NAMED ? ` and ${paths.length - MOST_NAMED} more` : ''
    return `puzzlectl: not in the patch: ${named}${others} (${visibleLine(why)})\n`
  })
  const word = requests === 1 ? 'request' : 'requests'
  if (requests > 0) sentences.push(`puzzlectl: not in the patch: ${requests} queued ${word}\n`)
  return sentences
}
