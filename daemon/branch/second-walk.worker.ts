import { workerData } from 'node:worker_threads'
import { threadNumber } from '../kernel/thread.ts'
import { holdAgain } from '../lib/lean-heap.ts'
import { DiffCounts } from './diff-counts.ts'
import { SideSink } from './diff-side-sink.ts'
import { receiveMail, type SecondData } from './second-walker.ts'
import { SECOND, WalkMemory } from './walk-memory.ts'
import { Partner } from './walk-partner.ts'

/** Looks at what the first thread of a walk offers, until that one ends it. */
function run({ memory: shared, counts, port }: SecondData): void {
  holdAgain()
  const memory = new WalkMemory(shared)
  const sink = new SideSink(new DiffCounts(counts))
  memory.thread = threadNumber()
  const partner = new Partner({
    side: SECOND,
    memory,
    receiver: sink,
    post: (mail) => port.postMessage(mail),
    receive: () => receiveMail(port),
    handIn: () => sink.handIn(),
    take: () => undefined,
    // The first thread takes this one with it.
    waiting: () => undefined,
  })
  partner.serve()
}

run(workerData as SecondData)
