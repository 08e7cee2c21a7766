/**
 * A named place where a test can make the process die, fail or wait. In production every call is one map lookup.
 * `PUZZLED_FAILPOINTS=commit.after-intent=kill,journal.append=ENOSPC` arms a real process from outside.
 */
type Action = () => void

const armed = new Map<string, Action>()
let observer: ((name: string) => void) | undefined

export function failpoint(name: string): void {
  observer?.(name)
  armed.get(name)?.()
}

/** For tests in the same process: arm one failpoint; the result disarms it. */
export function armFailpoint(name: string, action: Action): () => void {
  armed.set(name, action)
  return () => armed.delete(name)
}

/** For tests that enumerate the steps of an operation. */
export function observeFailpoints(listener: ((name: string) => void) | undefined): void {
  observer = listener
}

function actionFor(what: string): Action {
  if (what === 'kill') return () => process.kill(process.pid, 'SIGKILL')
  return () => {
    throw Object.assign(new Error(`failpoint: ${what}`), { code: what })
  }
}

for (const pair of (process.env.PUZZLED_FAILPOINTS ?? '').split(',')) {
  const [name, what] = pair.split('=')
  if (name !== undefined && what !== undefined) armed.set(name, actionFor(what))
}
