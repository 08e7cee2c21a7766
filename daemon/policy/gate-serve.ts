import { loadPolicy } from '@open-policy-agent/opa-wasm'
import { receive, send } from '../lib/worker-channel.ts'
import { type ContentScan, scanContent } from './content-scan.ts'
import {
  type EvaluateMessage,
  type GateMessage,
  MAX_REPLY_BYTES,
  type ScanMessage,
  type StartMessage,
} from './gate-messages.ts'
import { engine } from './webassembly.ts'

type Instance = Awaited<ReturnType<typeof loadPolicy>>

/** Memory of an instance never shrinks: beyond this a new instance is cheaper than the pages. */
const RECYCLE_BYTES = 96 * 1024 * 1024
/** opa's runtime begins with this much; a smaller maximum than that cannot load anything. */
const INITIAL_PAGES = 5
/** A name that an agent chose can be in a message. */
const MESSAGE_LENGTH = 1000

interface Policy {
  readonly name: string
  readonly entrypoint: string | null
  readonly module: object
  instance: Instance | null
}

/**
 * Evaluates policies and scans contents in a process of its own. It knows no time limit: the daemon ends the process
 * when it is late. The memory of a policy has a maximum, which makes a greedy one trap. `confine` gives up every right
 * of this process: it comes after our own code and the policies, and before the first byte that an agent wrote.
 */
export async function serveGate(confine: () => void): Promise<void> {
  // What a policy prints (`opa_println`) is nobody's business.
  console.log = () => undefined
  const first = receive()
  if (first === null) return
  let world: { policies: Policy[]; memoryPages: number }
  try {
    world = await begin(first.header as StartMessage, first.body)
    confine()
  } catch (error) {
    send({
      kind: 'unfit',
      reason: (error instanceof Error ? error.message : describe(error)).slice(0, MESSAGE_LENGTH),
    })
    return
  }
  send({ kind: 'ready' })
  for (let next = receive(); next !== null; next = receive()) {
    const message = next.header as GateMessage
    if (message.kind === 'evaluate') send(await evaluateAll(world, message, next.body))
    else if (message.kind === 'scan')
      send({ kind: 'scanned', id: message.id, scans: scanAll(message, next.body) })
  }
}

/** A policy that cannot be instantiated must be found out before it is needed. */
async function begin({ policies, memoryPages }: StartMessage, body: Buffer) {
  let at = 0
  const loaded = policies.map(({ name, file, entrypoint, bytes }): Policy => {
    const module = compile(file, body.subarray(at, at + bytes))
    at += bytes
    return { name, entrypoint, module, instance: null }
  })
  for (const policy of loaded) await instanceOf(policy, memoryPages)
  return { policies: loaded, memoryPages }
}

function compile(file: string, bytes: Uint8Array): object {
  try {
    return new engine.Module(bytes)
  } catch (error) {
    throw new Error(`${file}: no WebAssembly: ${describe(error)}`)
  }
}

async function instanceOf(policy: Policy, memoryPages: number): Promise<Instance> {
  if (policy.instance !== null) return policy.instance
  // The types say bytes; a compiled module is what the engine wants in the end and is taken as it is.
  const fresh = await loadPolicy(policy.module as unknown as ArrayBuffer, {
    initial: INITIAL_PAGES,
    maximum: memoryPages,
  })
  entrypointOf(policy, fresh)
  policy.instance = fresh
  return fresh
}

/** The entry point by name, or the only one that there is: a policy with several must say which one is meant. */
function entrypointOf({ name, entrypoint }: Policy, instance: Instance): string {
  const names = Object.keys(instance.entrypoints)
  const wanted = entrypoint ?? (names.length === 1 ? names[0] : undefined)
  if (wanted !== undefined && names.includes(wanted)) return wanted
  throw new Error(
    `policy "${name}" has the entry points ${names.join(', ') || 'none'}, expected ${entrypoint ?? 'exactly one'}`,
  )
}

type World = Awaited<ReturnType<typeof begin>>

async function evaluateAll(world: World, { id }: EvaluateMessage, body: Buffer) {
  // Whole memory of its own, as `readExactly` made it: the engine takes nothing less.
  const input = body.buffer as ArrayBuffer
  const results: ({ output: unknown } | { failure: string })[] = []
  let size = 0
  for (const policy of world.policies) {
    const { text, result } = await evaluate(policy, world.memoryPages, input)
    size += text
    // A result is findings; more text than this is a policy that has gone wrong, and must not reach the daemon's heap.
    results.push(size > MAX_REPLY_BYTES - 1024 * 1024 ? { failure: 'the result is too large' } : result)
  }
  return { kind: 'evaluated', id, results }
}

/** After a trap an instance is in no known state: it is dropped, and the next evaluation gets a new one. */
async function evaluate(policy: Policy, memoryPages: number, input: ArrayBuffer) {
  try {
    const instance = await instanceOf(policy, memoryPages)
    const output: unknown = instance.evaluate(input, entrypointOf(policy, instance))
    if (instance.mem.buffer.byteLength > RECYCLE_BYTES) policy.instance = null
    return { text: Buffer.byteLength(JSON.stringify(output)), result: { output } }
  } catch (error) {
    policy.instance = null
    return { text: 0, result: { failure: describe(error).slice(0, MESSAGE_LENGTH) } }
  }
}

function scanAll({ items }: ScanMessage, body: Buffer): ContentScan[] {
  let at = 0
  const next = (length: number): Buffer => {
    at += length
    return body.subarray(at - length, at)
  }
  return items.map((item) => {
    const [path, content] = [next(item.path), next(item.content)]
    const old = item.old < 0 ? undefined : next(item.old)
    const { complete } = item
    const scan = scanContent(path, content, old === undefined ? { complete } : { complete, old })
    const findings = scan.findings.map(({ rule, message }) => ({
      rule,
      message: message.slice(0, MESSAGE_LENGTH),
    }))
    return { ...scan, findings }
  })
}

/** The engine throws strings and plain objects as well as errors. */
function describe(error: unknown): string {
  if (error instanceof Error) return `${error.name}: ${error.message}`
  if (typeof error === 'string') return error
  return JSON.stringify(error) ?? 'unknown failure'
}
