import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { serialize } from 'node:v8'
import { digestOf } from '../../daemon/branch/changeset.ts'
import { Reader, readChange } from '../../daemon/branch/changeset-codec.ts'
import type { LandCall, RecoverCall } from '../../daemon/branch/commit.worker.ts'
import { type DiffJob, runDiff } from '../../daemon/branch/diff-job.ts'
import { packChanges } from '../../daemon/branch/journal/changes.ts'
import type { CommitFate } from '../../daemon/branch/recovery-plan.ts'
import type { Change } from '../../daemon/contract/changeset.ts'
import { workerPath } from '../../daemon/lib/assets.ts'
import { describeTree } from '../root/commit-ground.ts'

export const COMMIT = 'c23456789bcd'
const child = fileURLToPath(new URL('kill-child.mjs', import.meta.url))
const sh = (script: string, cwd: string): void => {
  execFileSync('sh', ['-ec', script], { cwd })
}

/** A base and an upper layer as overlayfs would have left it, on a real disk, for commits that are killed. */
export class KillGround {
  readonly root = realpathSync(mkdtempSync(join(tmpdir(), 'puzzled-kill-')))
  readonly store = join(this.root, 'store')
  readonly base = join(this.root, 'base')
  readonly upper = join(this.root, 'upper')

  constructor() {
    for (const dir of ['store', 'store/journal', 'store/staging', 'base', 'upper'])
      mkdirSync(join(this.root, dir), { mode: 0o700 })
    sh(
      'mkdir -p tree/deep; echo a > edit; echo b > gone; echo c > tree/deep/x; echo d > meta; ln -s edit link; mkdir becomes',
      this.base,
    )
    sh(
      `echo new > edit; mknod gone c 0 0; mknod tree c 0 0; cp -p ../base/meta meta; chmod 600 meta; ln -s gone link
       echo file > becomes; mkdir -p new/sub; echo n > new/sub/n; ln new/sub/n new/hard; head -c 3000000 /dev/urandom > large`,
      this.upper,
    )
  }

  get tree(): string {
    return describeTree(this.base).join('\n')
  }

  get diff(): DiffJob {
    const { mode, uid, gid } = statSync(this.base)
    const forked = { mode: mode & 0o7777, uid, gid, xattrs: [] }
    return { bases: [{ path: this.base, dev: statSync(this.base).dev, uppers: [this.upper], forked }] }
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
      digest: digestOf({ bases: [this.base], changes, requests: [] }),
      part: false,
      reverts: null,
      requester: { uid: 0, gid: 0, groups: [], name: 'root' },
      at: '2026-01-01T00:00:00.000Z',
      forkedAtNs: null,
      allowSetuid: false,
      bases: [{ path: this.base, dev: statSync(this.base).dev }],
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
    ]
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true })
  }
}
