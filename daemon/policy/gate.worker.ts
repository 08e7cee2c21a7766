import { parentPort, workerData } from 'node:worker_threads'
import { loadPolicy } from '@open-policy-agent/opa-wasm'
import { scanContent } from './content-scan.ts'
import type { GateReply, GateRequest, GateWorkerData, LoadedPolicy } from './gate-messages.ts'

/**
 * Evaluates policies and scans contents away from the event loop. It knows no time limit: the daemon ends the thread
 * when it is late. The memory of a policy has a maximum, which makes a greedy one trap.
 */
const { policies, memoryPages } = workerData as GateWorkerData

type Instance = Awaited<ReturnType<typeof loadPolicy>>

/** Memory of an instance never shrinks: beyond this a new instance is cheaper than the pages. */
const RECYCLE_BYTES = 96 * 1024 * 1024
/** opa's runtime begins with this much; a smaller maximum than that cannot load anything. */
const INITIAL_PAGES = 5

const instances = new Map<LoadedPolicy, Instance>()

async function instanceOf(policy: LoadedPolicy): Promise<Instance> {
  const known = instances.get(policy)
  if (known !== undefined) return known
  // The types say bytes; a compiled module is what the engine wants in the end and is taken as it is.
  const fresh = await loadPolicy(policy.module as unknown as ArrayBuffer, {
    initial: INITIAL_PAGES,
    maximum: memoryPages,
  })
  entrypointOf(policy, fresh)
  instances.set(policy, fresh)
  return fresh
}

/** The entry point by name, or the only one that there is: a policy with several must say which one is meant. */
function entrypointOf(policy: LoadedPolicy, instance: Instance): string {
  const names = Object.keys(instance.entrypoints)
  const wanted = policy.entrypoint ?? (names.length === 1 ? names[0] : undefined)
  if (wanted !== undefined && names.includes(wanted)) return wanted
  throw new Error(
    `policy "${policy.name}" has the entry points ${names.join(', ') || 'none'}, expected ${policy.entrypoint ?? 'exactly one'}`,
  )
}

/** A result is findings; more text than this is a policy that has gone wrong, and must not reach the daemon's heap. */
const MAX_OUTPUT = 16 * 1024 * 1024

/** After a trap an instance is in no known state: it is dropped, and the next evaluation gets a new one. */
async function evaluate(
  policy: LoadedPolicy,
  input: ArrayBuffer,
): Promise<{ output: unknown } | { failure: string }> {
  try {
    const instance = await instanceOf(policy)
    const output: unknown = instance.evaluate(input, entrypointOf(policy, instance))
    if (JSON.stringify(output).length > MAX_OUTPUT) throw new Error('the result is too large')
    if (instance.mem.buffer.byteLength > RECYCLE_BYTES) instances.delete(policy)
    return { output }
  } catch (error) {
    instances.delete(policy)
    return { failure: describe(error) }
  }
}

/** The engine throws strings and plain objects as well as errors. */
function describe(error: unknown): string {
  if (error instanceof Error) return `${error.name}: ${error.message}`
  if (typeof error === 'string') return error
  return JSON.stringify(error) ?? 'unknown failure'
}

// What a policy prints (`opa_println`) is nobody's business and must not pile up.
console.log = () => undefined

const port = parentPort
if (port === null) throw new Error('gate.worker is a worker thread')
const reply = (message: GateReply): void => port.postMessage(message)

async function handle(request: GateRequest): Promise<void> {
  if (request.kind === 'evaluate') {
    const results: ({ output: unknown } | { failure: string })[] = []
    for (const policy of policies) results.push(await evaluate(policy, request.input))
    reply({ kind: 'evaluated', id: request.id, results })
    return
  }
  const scans = request.items.map(({ change, path, content, complete, old }) => ({
    change,
    scan: scanContent(path, content, old === undefined ? { complete } : { complete, old }),
  }))
  reply({ kind: 'scanned', id: request.id, scans })
}

// A rejection ends the thread, which the daemon takes as a failure of the job.
port.on('message', (request: GateRequest) => void handle(request))

/** A policy that cannot be instantiated must be found out before it is needed. */
async function begin(): Promise<void> {
  for (const policy of policies) await instanceOf(policy)
  reply({ kind: 'ready' })
}

void begin()
