import { expect, it } from 'vitest'
import { documentOf } from './bench/document.ts'
import type { AreaReport } from './bench/harness.ts'
import type { BenchReport, Machine } from './bench/report.ts'

const machine: Machine = {
  ...{
    cpu: 'plain',
    cpus: 2,
    memoryGiB: 8,
    kernel: '6.1',
    distribution: 'd',
    node: 'v20',
    filesystem: 'ext4',
  },
  load: [0.5, 1],
}
const time = { median: 2, p99: 3, spread: 0.1, rounds: 15 }
const measured: AreaReport = {
  ...{ missing: null, failed: null, facts: [], peers: [], seconds: 1 },
  results: [
    { case: 'open files', baseline: 'without', goal: null, candidates: { with: { ...time, ratio: 1.5 } } },
  ],
}
const run = (area: AreaReport, about: Partial<Machine> = {}): BenchReport => ({
  ...{ version: 1, at: '2026-01-02T03:04:05Z', machine: { ...machine, ...about } },
  areas: { lsm: area },
})
const notHere = { ...measured, results: [], missing: 'bpf is not in lsm=' }

it('what cannot be measured here is shown from elsewhere, and as what it is', () => {
  const there = run(measured, { kernel: '6.12' })
  const text = documentOf(run(notHere), there)
  expect(text).toContain('Not measured here: bpf is not in lsm=.')
  expect(text).toMatch(/on 2026-01-02 .*\*\*emulated in software\*\*.*Linux 6\.12/)
  expect(text).toContain('| with | 2.00 ms | 3.00 ms | 1.50 | 10 % | 15 |')
  expect(documentOf(run(notHere))).not.toContain('emulated')
  expect(documentOf(run(measured), there)).not.toContain('emulated')
})

it('a run beside other work says so', () => {
  expect(documentOf(run(measured))).not.toContain('busy')
  expect(documentOf(run(measured, { load: [0.5, 3.5] }))).toContain('**busy with other work**')
})
