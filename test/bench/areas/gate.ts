import { join } from 'node:path'
import type { Changeset } from '../../../daemon/contract/changeset.ts'
import { packageRoot } from '../../../daemon/lib/assets.ts'
import { PolicyGate } from '../../../daemon/policy/gate.ts'
import { gateInput } from '../../../daemon/policy/gate-input.ts'
import { policySources } from '../../../daemon/policy/policy-set.ts'
import { contentsOf, makeChangeset, makeRecord, type ShortChange } from '../../fakes/changesets.ts'
import type { BenchArea, BenchCase, Notes } from '../harness.ts'

const sources = () => policySources({ directory: join(packageRoot(), 'no-such-folder') })
const record = makeRecord({}, { maxFiles: 1e6, maxDeletions: 1e6 })

const changes = (count: number): ShortChange[] =>
  Array.from({ length: count }, (_, n) => ({
    kind: n % 3 === 0 ? 'add' : 'modify',
    path: `src/module${n % 300}/component/file${n}.ts`,
    content: `export const n${n} = ${n}\n`.repeat(20),
  }))

async function warmGate(
  workers: number,
  contents: ConstructorParameters<typeof PolicyGate>[0]['contents'] = null,
) {
  const gate = new PolicyGate({ sources, contents, limits: { workers, timeoutMs: 60_000 } })
  await gate.warm()
  return gate
}

async function cold(): Promise<void> {
  const gate = new PolicyGate({ sources, contents: null, limits: { workers: 1 } })
  await gate.warm()
  await gate.close()
}

async function cases(notes: Notes): Promise<BenchCase[]> {
  const before = process.memoryUsage().rss
  const gate = await warmGate(2)
  const sizes = [1, 100, 1_000, 10_000].map((count): [string, Changeset] => [
    `${count} changes`,
    makeChangeset(changes(count)),
  ])
  const judge = ([name, changeset]: [string, Changeset]): [string, () => Promise<void>] => [
    name,
    async () => {
      const { kind } = await gate.evaluate(record, changeset)
      if (kind !== 'allow') throw new Error(`${name}: ${kind}`)
    },
  ]
  const thousand = sizes[2]?.[1] ?? makeChangeset([])
  const short = changes(1_000)
  const reading = await warmGate(2, contentsOf(short))
  const single = await warmGate(1)
  const burst = (target: PolicyGate) => async (): Promise<void> => {
    await Promise.all(Array.from({ length: 8 }, () => target.evaluate(record, thousand)))
  }
  notes.fact('two warm workers: memory', (process.memoryUsage().rss - before) / 1e6, 'MB')
  return [
    {
      name: 'gate: cold load of one worker',
      baseline: 'load, try out, close',
      own: true,
      rounds: 20,
      warmUp: 2,
      candidates: { 'load, try out, close': cold },
    },
    {
      name: 'gate: a warm decision, document included',
      baseline: '1 changes',
      own: true,
      goal: 'p50 ≤ 10 ms at 1000, ≤ 100 ms at 10000',
      rounds: 40,
      candidates: Object.fromEntries(sizes.map(judge)),
    },
    {
      name: 'gate: parts of a decision on 1000 changes',
      baseline: 'decision without contents',
      own: true,
      rounds: 40,
      candidates: {
        'decision without contents': async () => void (await gate.evaluate(record, thousand)),
        'document alone': () => void gateInput(record, thousand, { now: new Date(0), scans: null }),
        'decision with 1000 contents examined': async () => void (await reading.evaluate(record, thousand)),
      },
    },
    {
      name: 'gate: eight decisions on 1000 changes at once',
      baseline: 'one worker',
      own: true,
      goal: '< 1 with two idle cores',
      rounds: 15,
      candidates: { 'one worker': burst(single), 'two workers': burst(gate) },
    },
  ]
}

export const area: BenchArea = { name: 'gate', cases }
