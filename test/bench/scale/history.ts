import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AuditLog } from '../../../daemon/audit/log.ts'
import { encodeRecord } from '../../../daemon/branch/branch-json.ts'
import { packageRoot } from '../../../daemon/lib/assets.ts'
import { newBranchId } from '../../../daemon/lib/ids.ts'
import { branchRecord } from '../../fakes/branch-record.ts'
import type { BenchCase, Notes } from '../harness.ts'
import { toSuccess } from '../processes.ts'

const AT_ONCE = 4_000
const now = (): Date => new Date()

/** Branches that landed long ago, as the store keeps them. */
function oldBranches(state: string, count: number): void {
  mkdirSync(join(state, 'branches'), { recursive: true, mode: 0o700 })
  for (let done = 0; done < count; done++) {
    const id = newBranchId()
    mkdirSync(join(state, 'branches', id), { mode: 0o700 })
    const record = branchRecord(id, { state: 'committed', reason: 'committed', bases: [] })
    writeFileSync(join(state, 'branches', id, 'branch.json'), encodeRecord(record), { mode: 0o600 })
  }
}

async function oldRecords(state: string, count: number): Promise<void> {
  mkdirSync(join(state, 'audit'), { recursive: true, mode: 0o700 })
  const log = await AuditLog.open(join(state, 'audit'), { now })
  for (let done = 0; done < count; done += AT_ONCE)
    await Promise.all(
      Array.from({ length: AT_ONCE }, (_, at) =>
        log.append('start', 'abcdefghjk', { command: ['make', done + at] }),
      ),
    )
  await log.close()
}

/** Commands on a store with years behind it, and on an empty one. */
export async function historyCase(branches: number, records: number, notes: Notes): Promise<BenchCase> {
  const [empty = '', full = ''] = ['empty', 'full'].map((name) => {
    const state = mkdtempSync(join(tmpdir(), `bench-${name}-`))
    process.once('exit', () => rmSync(state, { recursive: true, force: true }))
    return state
  })
  oldBranches(full, branches)
  const began = performance.now()
  await oldRecords(full, records)
  notes.fact('audit records written per second', records / ((performance.now() - began) / 1000), '/s')
  const program = [process.execPath, join(packageRoot(), 'dist', 'puzzlectl.js')]
  const cwd = baseBeside(empty)
  const puzzlectl =
    (state: string, ...words: string[]) =>
    () =>
      toSuccess([...program, '--state-dir', state, ...words], { cwd })
  return {
    name: `a store with ${branches} branches and ${records} audit records`,
    baseline: 'ls, empty store',
    own: true,
    goal: 'no target',
    rounds: 8,
    warmUp: 1,
    candidates: {
      'ls, empty store': puzzlectl(empty, 'ls'),
      'ls, history': puzzlectl(full, 'ls'),
      'ls --all, history': puzzlectl(full, 'ls', '--all'),
      'run -- true, empty store': puzzlectl(empty, 'run', '--', 'true'),
      'run -- true, history': puzzlectl(full, 'run', '--', 'true'),
    },
  }
}

/** A base must not overlap a store. */
function baseBeside(state: string): string {
  const base = `${state}-base`
  mkdirSync(base, { recursive: true })
  process.once('exit', () => rmSync(base, { recursive: true, force: true }))
  return base
}
