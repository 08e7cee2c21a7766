import { execFileSync, spawn } from 'node:child_process'
import { appendFileSync, chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const repository = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '')
const sudoSource = fileURLToPath(new URL('sudo.c', import.meta.url))

/** The people of the documents: a developer and a colleague who reviews, with numbers that no machine has given away. */
export const PEOPLE = { alice: 41_000, bob: 41_001 } as const
export type Person = keyof typeof PEOPLE

export interface Shown {
  status: number | null
  /** Standard output and standard error, in the order in which a terminal would have shown them. */
  text: string
}

/**
 * A machine as the documents describe it, inside the room of a test: two people, `sudo`, `puzzlectl` in the search path, a
 * store of its own at /var/lib/puzzled, and an /etc that may be changed. Nothing of the real ones is touched.
 */
export class Stage {
  readonly root: string
  readonly home: string
  readonly environment: Record<string, string | undefined>
  readonly #endings: (() => void)[] = []

  constructor() {
    this.root = mkdtempSync(join(tmpdir(), 'puzzled-stage-'))
    chmodSync(this.root, 0o755)
    this.home = this.folder('home')
    this.environment = {
      PATH: `${this.root}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin`,
      HOME: this.home,
      LANG: 'C.UTF-8',
      NO_COLOR: '1',
    }
    try {
      this.#build()
    } catch (error) {
      this.strike()
      throw error
    }
  }

  #build(): void {
    this.mount(['--bind', repository], this.folder('app'))
    this.mount(['-t', 'tmpfs', '-o', 'mode=755', 'none'], this.folder('bin'))
    execFileSync('gcc', ['-O1', '-o', this.path('bin/sudo'), sudoSource])
    chmodSync(this.path('bin/sudo'), 0o4755)
    for (const name of ['puzzlectl', 'puzzled'])
      this.program(name, `exec ${process.execPath} ${this.path(`app/dist/${name}.js`)} "$@"`)
    this.folder('var/puzzled')
    this.mount(['--bind', this.path('var')], '/var/lib')
    const layers = `lowerdir=/etc,upperdir=${this.folder('etc/upper')},workdir=${this.folder('etc/work')}`
    this.mount(['-t', 'overlay', '-o', layers, 'none'], '/etc')
    for (const [name, uid] of Object.entries(PEOPLE)) {
      appendFileSync('/etc/passwd', `${name}:x:${uid}:${uid}::${this.home}:/bin/sh\n`)
      appendFileSync('/etc/group', `${name}:x:${uid}:\n`)
    }
    appendFileSync('/etc/group', 'puzzled:x:41991:alice,bob\npuzzled-reviewers:x:41992:bob\n')
    chownSync(this.home, PEOPLE.alice, PEOPLE.alice)
  }

  path(name: string): string {
    return join(this.root, name)
  }

  folder(name: string): string {
    mkdirSync(this.path(name), { recursive: true })
    return this.path(name)
  }

  /** Done by `strike`, last first. */
  atEnd(act: () => void): void {
    this.#endings.push(act)
  }

  /** Undone at the end. */
  mount(what: readonly string[], where: string): void {
    execFileSync('mount', [...what, where])
    this.atEnd(() => execFileSync('umount', [where]))
  }

  /** A program of the stage, as a shell script. */
  program(name: string, script: string): void {
    writeFileSync(this.path(`bin/${name}`), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  }

  /** A directory of alice's. */
  project(name: string): string {
    const place = this.folder(`home/${name}`)
    this.give(place)
    return place
  }

  /** What was put there for alice belongs to her. Changes the times of the files: only before a branch is forked. */
  give(place: string): void {
    execFileSync('chown', ['-R', `${PEOPLE.alice}:${PEOPLE.alice}`, place])
  }

  /** What a person types, and what the terminal shows. */
  async type(command: string, cwd: string, who: Person = 'alice'): Promise<Shown> {
    const uid = String(PEOPLE[who])
    const identity = ['--reuid', uid, '--regid', uid, '--init-groups']
    const child = spawn('setpriv', [...identity, 'bash', '-c', `exec 2>&1\n${command}`], {
      cwd,
      env: this.environment,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
    })
    return new Promise((resolve, reject) => {
      child.on('error', reject)
      child.on('close', (status) => resolve({ status, text }))
    })
  }

  /** A program of the stage or of the machine, as root; its output. */
  asRoot(command: string, ...args: string[]): string {
    return execFileSync(command, args, { encoding: 'utf8', env: this.environment as NodeJS.ProcessEnv })
  }

  write(path: string, text: string): void {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
  }

  /** Takes everything away again. */
  strike(): void {
    for (const end of this.#endings.splice(0).reverse()) end()
    rmSync(this.root, { recursive: true, force: true })
  }
}
