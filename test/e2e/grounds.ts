import { chownSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, type it } from 'vitest'
import { type Missing, needs, program, root } from '../tier/needs.ts'
import { DEVELOPER, type Ended, type Workplace, workplace } from './cli.ts'
import { type PrivateBus, privateBus } from './private-bus.ts'

/** One for each test, or one for all tests of a file or `describe`. */
export type Scope = 'each' | 'all'

const hooks = { each: [beforeEach, afterEach], all: [beforeAll, afterAll] } as const

/** What is made before a test by the name that the test knows: every member is looked up when it is used. */
function standsFor<Ground extends object>(
  scope: Scope,
  make: () => Ground | Promise<Ground>,
  end: (ground: Ground) => void | Promise<void>,
): Ground {
  const [before, after] = hooks[scope]
  let ground: Ground | undefined
  before(async () => {
    ground = await make()
  })
  after(async () => {
    // One that could not be made leaves nothing to end.
    const made = ground
    ground = undefined
    if (made !== undefined) await end(made)
  })
  return new Proxy({} as Ground, { get: (_, name) => Reflect.get(ground ?? {}, name) })
}

/** A bus and a daemon, and an `it` that skips with the reason where this machine cannot have them. */
export function onBus(scope: Scope, ...also: Missing[]): { here: PrivateBus; it: typeof it } {
  const missing = [root, program('dbus-daemon'), ...also]
  const check = needs(...missing)
  if (missing.some((reason) => reason !== undefined)) return { here: {} as PrivateBus, it: check }
  return { here: standsFor(scope, privateBus, (bus) => bus.close()), it: check }
}

/** Makes so many empty files, named by their numbers, that belong to whoever owns the folder. */
export function filesIn(folder: string, count: number): void {
  const { uid, gid } = statSync(folder)
  for (let name = 1; name <= count; name++) {
    const path = join(folder, `${name}`)
    writeFileSync(path, '')
    chownSync(path, uid, gid)
  }
}

export interface Project {
  here: Workplace
  /** A path in the project. */
  file(name: string): string
  /** Writes a file as the developer would have made it. */
  put(name: string, text: string): void
  text(name: string): string
  /** Runs a script in a new branch. */
  sh(script: string, ...options: string[]): Promise<Ended>
  /** The same, and the branch waits for a person. */
  hold(script: string, ...options: string[]): Promise<Ended>
  branches(): Promise<{ id: string; state: string; name: string | null }[]>
}

/** A project and a store without a daemon; what is still mounted at the end of a test fails it. */
export function inProject(scope: Scope = 'each'): Project {
  const here = standsFor(scope, workplace, (place) => {
    const left = readFileSync('/proc/self/mountinfo', 'utf8').includes(place.state)
    place.remove()
    expect(left, 'something is still mounted').toBe(false)
  })
  const file = (name: string): string => join(here.project, name)
  const sh = (script: string, ...options: string[]): Promise<Ended> =>
    here.puzzlectl('run', ...options, '--', 'sh', '-c', script)
  return {
    here,
    file,
    put: (name, text) => {
      writeFileSync(file(name), text)
      chownSync(file(name), DEVELOPER, DEVELOPER)
    },
    text: (name) => readFileSync(file(name), 'utf8'),
    sh,
    hold: (script, ...options) => sh(script, '--then', 'hold', ...options),
    branches: async () => JSON.parse((await here.puzzlectl('ls', '--all', '--json')).out),
  }
}
