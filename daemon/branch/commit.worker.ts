import { workerData } from 'node:worker_threads'
import { serveCalls } from '../lib/worker-side.ts'
import { commitVerbs } from './commit-verbs.ts'
import { HeldDescriptors } from './held-descriptors.ts'
import { HoldingDisk } from './kernel-disk.ts'

/** Whoever started this thread closes what it leaves open when it dies. */
const held = (workerData as { held?: SharedArrayBuffer } | null)?.held

serveCalls(commitVerbs(new HoldingDisk(new HeldDescriptors(held))))
