import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { BpfObject, bpfObjectFile } from '../../../daemon/kernel/bpf.ts'
import type { BenchArea } from '../harness.ts'
import { toSuccess } from '../processes.ts'

const STACK = '/sys/kernel/security/lsm'
const OPENS = 20_000
const PROGRAMS = 20
const WITHOUT = 'no program attached'
const WITH = 'puzzled: a program on file_open'

function whyNot(): string | undefined {
  if (process.geteuid?.() !== 0) return 'needs root'
  const stack = existsSync(STACK) ? readFileSync(STACK, 'utf8').trim() : ''
  if (stack.split(',').includes('bpf')) return undefined
  return (
    `bpf is not in lsm= (${stack === '' ? `${STACK} cannot be read` : stack}). In the test machine: ` +
    "npm run test:vm -- 'npm run bench -- lsm'; here: boot with lsm=…,bpf"
  )
}

function openFiles(): void {
  for (let count = 0; count < OPENS; count++) closeSync(openSync('/proc/self/stat', 'r'))
}

async function startPrograms(): Promise<void> {
  for (let count = 0; count < PROGRAMS; count++) await toSuccess(['/bin/true'])
}

let attached: BpfObject | undefined

async function attach(): Promise<void> {
  if (attached !== undefined) return
  attached = await BpfObject.load(bpfObjectFile('puzzle_probe'))
  attached.attachLsm('puzzle_probe')
}

function detach(): void {
  attached?.close()
  attached = undefined
}

/** What a program on a hook costs everybody on the machine: the hook is called whoever opens a file. */
export const area: BenchArea = {
  name: 'lsm',
  missing: whyNot,
  cases: () =>
    [
      { name: `open and close ${OPENS} files`, work: openFiles, rounds: 30 },
      { name: `start ${PROGRAMS} programs`, work: startPrograms, rounds: 15 },
    ].map(({ name, work, rounds }) => ({
      name,
      baseline: WITHOUT,
      goal: 'no target',
      rounds,
      warmUp: 2,
      before: { [WITHOUT]: detach, [WITH]: attach },
      candidates: { [WITHOUT]: work, [WITH]: work },
    })),
  close: detach,
}
