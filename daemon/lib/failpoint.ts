/**
 * A named place where a test can make the process die, fail or wait. In production every call is one map lookup.
 * `PUZZLED_FAILPOINTS=commit.after-intent=kill,journal.append=ENOSPC` arms a real process from outside;
 * `commit.staged-one#3=kill` when it passes there for the third time, `diff.thousand=wait:300` to make short work long.
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
  const millis = /^wait:(\d+)$/.exec(what)?.[1]
  if (millis !== undefined) return () => standStill(Number(millis))
  return () => {
    throw Object.assign(new Error(`failpoint: ${what}`), { code: what })
  }
}

const standStill = (millis: number): void =>
  void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, millis)

function onTime(time: number, action: Action): Action {
  let passed = 0
  return () => {
    if (++passed >= time) action()
  }
}

for (const pair of (process.env.PUZZLED_FAILPOINTS ?? '').split(',')) {
  const [place = '', what] = pair.split('=')
  const [name = '', time = '1'] = place.split('#')
  if (what !== undefined) armed.set(name, onTime(Number(time), actionFor(what)))
}
