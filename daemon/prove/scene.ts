import { createHash } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { AgentExit, Requester } from '../contract/branch.ts'
import type { Engine, Outcome } from '../contract/engine.ts'
import { isTerminal } from '../contract/states.ts'
import type { Outside } from './outside.ts'

export interface Played {
  base: string
  /** The base is byte for byte what it was before. */
  untouched: boolean
  outcome: Outcome
  output: string
  exit: AgentExit
}

export interface SceneOptions {
  readonly engine: Engine
  readonly outside: Outside
  /** For the bases; everybody may enter. */
  readonly room: string
  readonly user: { readonly uid: number; readonly gid: number }
  readonly profile: string
}

/** A disposable store with its engine, in which scripts are run as an agent's command. */
export class Scene {
  readonly engine: Engine
  readonly outside: Outside
  readonly #room: string
  readonly #user: SceneOptions['user']
  readonly #profile: string

  constructor(options: SceneOptions) {
    this.engine = options.engine
    this.outside = options.outside
    this.#room = options.room
    this.#user = options.user
    this.#profile = options.profile
  }

  /** Runs a script of the shell in a new branch over a new base. */
  async play(
    script: string,
    options: { afterwards: 'gate' | 'hold'; shell?: string; budgets?: Record<string, number> },
  ): Promise<Played> {
    const base = this.#newBase()
    const before = fingerprint(base)
    const session = await this.engine.run({
      ...{
        bases: [base],
        cwd: base,
        name: null,
        profile: this.#profile,
        environment: {},
        setEnvironment: {},
      },
      requester: this.#requester(),
      command: [options.shell ?? '/bin/sh', '-c', script],
      afterwards: options.afterwards,
      budgets: options.budgets ?? {},
      stdio: { kind: 'pipes' },
    })
    session.input?.end()
    session.errors?.resume()
    const output = session.output === undefined ? '' : await text(session.output)
    const exit = await session.exited
    const outcome = await this.engine.finish(session.id)
    return { base, untouched: fingerprint(base) === before, outcome, output, exit }
  }

  /** A branch that changed nothing is gone already. */
  async discard({ branch, state }: Outcome): Promise<void> {
    if (!isTerminal(state)) await this.engine.discard(branch)
  }

  #requester(): Requester {
    return { ...this.#user, groups: [this.#user.gid], name: 'prove' }
  }

  #newBase(): string {
    const base = mkdtempSync(join(this.#room, 'base-'))
    chmodSync(base, 0o755)
    for (const name of ['kept', 'removed']) writeFileSync(join(base, name), `${name}\n`)
    for (const path of [join(base, 'kept'), join(base, 'removed'), base])
      chownSync(path, this.#user.uid, this.#user.gid)
    return base
  }
}

/** Names, types, modes, owners, times and content of everything below. */
export function fingerprint(path: string): string {
  const hash = createHash('sha256')
  const visit = (at: string): void => {
    const stat = lstatSync(at)
    hash.update(JSON.stringify([at, stat.mode, stat.uid, stat.gid, stat.mtimeMs]))
    if (stat.isSymbolicLink()) hash.update(readlinkSync(at))
    if (stat.isFile()) hash.update(readFileSync(at))
    if (stat.isDirectory()) for (const name of readdirSync(at).sort()) visit(join(at, name))
  }
  visit(path)
  return hash.digest('hex')
}
