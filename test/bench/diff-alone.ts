import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { LayerDiffer } from '../../daemon/branch/diff.ts'
import type { BranchRecord } from '../../daemon/contract/branch.ts'

/** What `tellDiffAlone` is told, in a file: one diff in a process that has done nothing before. */
interface Question {
  branches: string
  record: BranchRecord
  files: number
}

/** The option of this program that makes it the process that does nothing but one diff. */
export const DIFF_ALONE = 'diff-alone'

/** How many bytes a process takes at most that does one diff, Node itself included. */
export function memoryOfDiffAlone(store: string, record: BranchRecord, files: number): number {
  const file = join(store, 'diff-alone.json')
  const question: Question = { branches: join(store, 'branches'), record, files }
  writeFileSync(file, JSON.stringify(question))
  const [program = ''] = process.argv.slice(1)
  return Number(execFileSync(process.execPath, [program, `--${DIFF_ALONE}`, file], { encoding: 'utf8' }))
}

export async function tellDiffAlone(file: string): Promise<void> {
  const { branches, record, files } = JSON.parse(readFileSync(file, 'utf8')) as Question
  const differ = new LayerDiffer({ directory: (id) => join(branches, id) })
  const { changes } = await differ.diff(record)
  if (changes.length !== files) throw new Error(`${changes.length} changes`)
  const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
  console.log(Number(kilobytes) * 1024)
}
