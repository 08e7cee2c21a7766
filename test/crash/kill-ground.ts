import { execFileSync, spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { serialize } from 'node:v8'
import { digestOf } from '../../daemon/branch/changeset.ts'
import { Reader, readChange } from '../../daemon/branch/changeset-codec.ts'
import { AREA_NAME } from '../../daemon/branch/commit-areas.ts'
import type { LandCall, RecoverCall } from '../../daemon/branch/commit-verbs.ts'
import { type DiffJob, runDiff } from '../../daemon/branch/diff-job.ts'
import { packChanges } from '../../daemon/branch/journal/changes.ts'
import type { CommitFate } from '../../daemon/branch/recovery-plan.ts'
import type { Change } from '../../daemon/contract/changeset.ts'
import { workerPath } from '../../daemon/lib/assets.ts'
import { describeTree } from '../root/commit-ground.ts'

export const COMMIT = 'c23456789bcd'
const child = fileURLToPath(new URL('kill-child.mjs', import.meta.url))
const sh = (script: string, cwd: string, env: Record<string, string> = {}): void => {
  execFileSync('sh', ['-ec', script], { cwd, env: { ...process.env, ...env } })
}

/** Bases and an upper layer for each as overlayfs would have left them, on real disks, for commits that are killed. */
export class KillGround {
  readonly root: string
  readonly store: string
  readonly bases: readonly string[]
  readonly #places: readonly string[]

  /** `places` are empty directories: one for the store, and one for each base. */
  constructor(
    store: string = mkdtempSync(join(tmpdir(), 'puzzled-kill-')),
    places: readonly string[] = [store],
  ) {
    this.root = realpathSync(store)
    this.store = join(this.root, 'store')
    this.#places = places.map((place) => realpathSync(place))
    this.bases = this.#places.map((place) => join(place, 'base'))
    for (const dir of ['store', 'store/journal', 'store/staging'])
      mkdirSync(join(this.root, dir), { mode: 0o700 })
    for (const [index, base] of this.bases.entries()) {
      mkdirSync(base, { mode: 0o700 })
      mkdirSync(this.#upper(index), { mode: 0o700 })
      sh(
        'mkdir -p tree/deep; echo a > edit; echo b > gone; echo c > tree/deep/x; echo d > meta; ln -s edit link; mkdir becomes',
        base,
      )
      sh(
        `echo new > edit; mknod gone c 0 0; mknod tree c 0 0; cp -p "$BASE/meta" meta; chmod 600 meta; ln -s gone link
         echo file > becomes; mkdir -p new/sub; echo n > new/sub/n; ln new/sub/n new/hard; yes large | head -c 3000000 > large`,
        this.#upper(index),
        { BASE: base },
      )
    }
  }

  #upper(base: number): string {
    return join(this.root, `upper-${base}`)
  }

  get tree(): string {
    return this.bases.flatMap((base) => describeTree(base)).join('\n')
  }

  get diff(): DiffJob {
    const bases = this.bases.map((path, index) => {
      const { mode, uid, gid, dev } = statSync(path)
      const forked = { mode: mode & 0o7777, uid, gid, xattrs: [] }
      return { path, dev, uppers: [this.#upper(index)], forked }
    })
    return { bases }
  }

  /** Everything that the commit needs, as of now. */
  landCall(): LandCall {
    const changes: Change[] = []
    let digest = ''
    runDiff(this.diff, (message) => {
      if (message.kind === 'changes')
        for (const reader = new Reader(message.bytes); !reader.done; ) changes.push(readChange(reader))
      if (message.kind === 'done') digest = message.digest
    })
    const job = {
      commit: COMMIT,
      branch: '23456789bc',
      digest: digestOf({ bases: this.bases, changes, requests: [] }),
      part: false,
      reverts: null,
      requester: { uid: 0, gid: 0, groups: [], name: 'root' },
      at: '2026-01-01T00:00:00.000Z',
      forkedAtNs: null,
      allowSetuid: false,
      bases: this.diff.bases.map(({ path, dev }) => ({ path, dev })),
    }
    const packed = [...packChanges(changes)]
    return { store: this.store, job, packed, diff: this.diff, filesDigest: digest, hasLanded: false }
  }

  /** Runs a call in a process of its own that dies at the failpoint. Null when it did. */
  run(
    verb: 'land' | 'recover',
    argument: LandCall | RecoverCall,
    failpoints: string,
  ): { kind: string; value?: unknown } | null {
    const file = join(this.root, 'call')
    writeFileSync(file, serialize({ verb, argument }))
    const done = spawnSync(process.execPath, [child, workerPath('commit'), file], {
      encoding: 'utf8',
      env: { ...process.env, PUZZLED_FAILPOINTS: failpoints },
    })
    if (done.signal === 'SIGKILL') return null
    return JSON.parse(done.stdout) as { kind: string; value?: unknown }
  }

  recover(failpoints = ''): CommitFate[] | null {
    const done = this.run(
      'recover',
      { store: this.store, at: '2026-01-01T00:00:01.000Z', retry: [] },
      failpoints,
    )
    return done === null ? null : (done.value as CommitFate[])
  }

  /** What is left of a commit that is not a kept old version. */
  leftovers(committed: boolean): string[] {
    const expected = committed ? [`${COMMIT}.changes`, `${COMMIT}.log`] : []
    return [
      ...readdirSync(join(this.store, 'journal')).filter((name) => !expected.includes(name)),
      ...readdirSync(join(this.store, 'staging')).filter(() => !committed),
      ...this.#places.flatMap((place) => {
        const area = join(place, AREA_NAME)
        return existsSync(area) && !committed ? readdirSync(area) : []
      }),
    ]
  }

  remove(): void {
    for (const base of this.bases) rmSync(base, { recursive: true, force: true })
    for (const place of this.#places) rmSync(join(place, AREA_NAME), { recursive: true, force: true })
    rmSync(this.root, { recursive: true, force: true })
  }
}
