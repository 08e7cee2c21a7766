import { serveCalls } from '../lib/worker-side.ts'
import { countDeletions, type DeletionQuestion } from './deletion-walk.ts'
import { measureTree, type Use } from './space-walk.ts'

/** A walk over a million files takes seconds: it has a thread of its own. */
serveCalls({
  measure: (path: string): Use => measureTree(path),
  deletions: (questions: readonly DeletionQuestion[]): number =>
    questions.reduce((sum, question) => sum + countDeletions(question), 0),
})
