// pure

/**
 * Structured values on the bus: every value carries its type in a variant, never as JSON in a string. Objects are
 * `a{sv}`, lists `av`, bytes `ay`, integers `x`, big integers `(x)`, and null is the empty signature (`g`).
 */

export type Variant = [signature: string, value: unknown]

/** `undefined` members are left out. */
export function toVariant(value: unknown): Variant {
  if (value === null || value === undefined) return ['g', '']
  if (typeof value === 'string') return ['s', value]
  if (typeof value === 'boolean') return ['b', value]
  if (typeof value === 'number') return Number.isSafeInteger(value) ? ['x', value] : ['d', value]
  if (typeof value === 'bigint') return ['(x)', [value]]
  if (value instanceof Uint8Array) return ['ay', Buffer.from(value)]
  if (Array.isArray(value)) return ['av', value.map(toVariant)]
  return ['a{sv}', toEntries(value as Readonly<Record<string, unknown>>)]
}

/** What an object shows of itself is what JSON would have of it: its fields may be accessors. */
export const toEntries = (value: object): [string, Variant][] =>
  Object.entries('toJSON' in value && typeof value.toJSON === 'function' ? value.toJSON() : value)
    .filter(([, member]) => member !== undefined)
    .map(([key, member]) => [key, toVariant(member)])

/** A variant as the wire library hands it out: the parsed signature and a list with the one value. */
interface Node {
  type: string
  child: Node[]
}

function signatureText(nodes: readonly Node[]): string {
  return nodes
    .map(({ type, child }) => {
      const inner = signatureText(child)
      return type === '(' ? `(${inner})` : type === '{' ? `{${inner}}` : `${type}${inner}`
    })
    .join('')
}

/** The plain value of what came off the wire as a variant. Types that we never send are refused. */
export function fromVariant(wire: unknown): unknown {
  const [nodes, values] = wire as [Node[], unknown[]]
  const [value] = values
  switch (signatureText(nodes)) {
    case 'g':
      return null
    case 's':
    case 'o':
    case 'b':
    case 'd':
      return value
    case 'y':
    case 'n':
    case 'q':
    case 'i':
    case 'u':
    case 'x':
    case 't':
      return Number(value)
    case '(x)':
      return BigInt((value as [number | bigint])[0])
    case 'ay':
      return Buffer.from(value as Uint8Array)
    case 'as':
      return value
    case 'av':
      return (value as unknown[]).map(fromVariant)
    case 'a{sv}':
      return fromEntries(value as [string, unknown][])
    default:
      throw new TypeError(`A value of type ${signatureText(nodes)} is not expected here`)
  }
}

/** Without a prototype: a key named `__proto__` is a key like any other. */
export function fromEntries(entries: readonly (readonly [string, unknown])[]): Record<string, unknown> {
  const record = Object.create(null) as Record<string, unknown>
  for (const [key, value] of entries) record[key] = fromVariant(value)
  return record
}

/** What a method answered, in the form that the contract gives it: whoever asks trusts the daemon. */
export const structureOf = <Structure>(entries: unknown): Structure =>
  fromEntries(entries as [string, unknown][]) as unknown as Structure

export const structuresOf = <Structure>(rows: unknown): Structure[] =>
  (rows as unknown[]).map((entries) => structureOf<Structure>(entries))
