import { chmodSync, closeSync, mkdirSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Launcher } from '../../../daemon/sandbox/launch.ts'
import { makeBranch, requestOf } from '../../root/branch.fixture.ts'
import { TestStore } from '../../root/branches.ts'
import type { BenchCase } from '../harness.ts'

const PER_FOLDER = 1_000
const quiet = { kind: 'inherit', fds: [0, 1, 2] } as const

/** Empty files: it is their number that must not matter. */
function fill(root: string, files: number): void {
  for (let file = 0; file < files; file++) {
    const folder = join(root, String(Math.floor(file / PER_FOLDER)))
    if (file % PER_FOLDER === 0) mkdirSync(folder)
    closeSync(openSync(join(folder, String(file)), 'w'))
  }
}

/** Fork a branch and run `true` in it: the same for every size of the base. */
export async function baseCase(sizes: readonly number[]): Promise<BenchCase> {
  const launcher = new Launcher()
  const store = new TestStore()
  process.once('exit', () => store.remove())
  const candidates = sizes.map((files): [string, () => Promise<void>] => {
    const base = mkdtempSync(join(tmpdir(), 'bench-base-'))
    process.once('exit', () => rmSync(base, { recursive: true, force: true }))
    chmodSync(base, 0o755)
    fill(base, files)
    const branch = makeBranch()
    process.once('exit', branch.remove)
    return [
      `${files} files`,
      async () => {
        const { record } = await store.fork([base])
        const at = join(store.directory(record.id), 'layers', '001', '0')
        const layers = { base, lowers: [base], upper: join(at, 'upper'), work: join(at, 'work') }
        const request = requestOf(branch, ['true'], { stdio: quiet })
        const agent = await launcher.start({ ...request, cwd: base, mounts: [layers] })
        const { code } = await agent.exited
        if (code !== 0) throw new Error(`true ended with ${code} over ${files} files`)
      },
    ]
  })
  return {
    name: 'fork and run `true` over a base',
    baseline: candidates[0]?.[0] ?? '',
    own: true,
    goal: 'flat: ≤ 1.2 for every size',
    rounds: 40,
    warmUp: 5,
    candidates: Object.fromEntries(candidates),
  }
}
