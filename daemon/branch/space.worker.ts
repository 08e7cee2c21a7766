import { serveCalls } from '../lib/worker-side.ts'
import { measureTree, type Use } from './space-walk.ts'

/** A walk over a million files takes seconds: it has a thread of its own. */
serveCalls({
  measure: (path: string): Use => measureTree(path),
})
