// pure
import type { PlanStep } from '../contract/plan.ts'
import type { SpawnArg, SpawnOp } from '../contract/spawn.ts'
import type { SpawnPlan } from './spawn-plan.ts'

/** The plan as rows. */
export const explainPlan = (plan: SpawnPlan): PlanStep[] =>
  plan.sections
    .flatMap((section) => section.ops.map((op) => ({ section: section.name, op })))
    .map(({ section, op }, index) => ({
      step: index + 1,
      section,
      name: op.name,
      call: op.call,
      args: op.args.map((arg, position) => argumentText(arg, op, position)),
      expect: typeof op.expect === 'object' ? op.expect.errno : op.expect,
    }))

function argumentText(arg: SpawnArg, op: SpawnOp, position: number): string {
  if (arg === null) return 'NULL'
  if (typeof arg === 'number' || typeof arg === 'bigint') return numberText(Number(arg))
  if (arg instanceof Uint8Array) return bytesText(arg) + patchText(op, position)
  if ('slot' in arg) return `<${arg.slot}>`
  if ('vector' in arg) return `[${arg.vector.map(bytesText).join(', ')}]`
  return `{${arg.struct.length} bytes, ${arg.pointers.map(({ to }) => `&${bytesText(to)}`).join(', ')}}`
}

/** Small numbers are counts and descriptors, large ones are flags. */
const numberText = (value: number): string =>
  value === -100 ? 'AT_FDCWD' : value < 4096 ? String(value) : `0x${value.toString(16)}`

/** A C string as one; anything else by its length and, when short, its words. */
function bytesText(bytes: Uint8Array): string {
  const text = Buffer.from(bytes).toString('utf8')
  const end = text.indexOf('\0')
  const isString =
    bytes.length > 0 &&
    end === text.length - 1 &&
    !/[\u0000-\u0008\u000e-\u001f\ufffd]/.test(text.slice(0, -1))
  if (isString) return JSON.stringify(text.slice(0, -1))
  if (bytes.length > 40 || bytes.length % 8 !== 0) return `{${bytes.length} bytes}`
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const words = Array.from({ length: bytes.length / 8 }, (_, index) => view.getBigUint64(index * 8, true))
  return `{${words.map((word) => `0x${word.toString(16)}`).join(', ')}}`
}

const patchText = (op: SpawnOp, position: number): string =>
  (op.patch ?? [])
    .filter((patch) => patch.arg === position)
    .map((patch) => ` with <${patch.slot}>`)
    .join('')
