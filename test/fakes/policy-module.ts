/**
 * A WebAssembly module that speaks the ABI of compiled policies and misbehaves in one way. Written by hand, because no
 * Rego source can loop for ever or allocate without end.
 */
export type Behaviour =
  | { kind: 'answer'; text: string }
  | { kind: 'trap' }
  | { kind: 'loop' }
  | { kind: 'grow' }

const ENTRYPOINTS_AT = 64
const ANSWER_AT = 1024

const leb = (value: number): number[] => {
  const bytes: number[] = []
  for (let rest = value; ; ) {
    const byte = rest & 0x7f
    rest >>>= 7
    // Signed encoding for constants: a set sign bit in the last byte would make it negative.
    if (rest === 0 && (byte & 0x40) === 0) return [...bytes, byte]
    bytes.push(byte | 0x80)
  }
}
const size = (value: number): number[] => {
  const bytes: number[] = []
  for (let rest = value; ; ) {
    const byte = rest & 0x7f
    rest >>>= 7
    if (rest === 0) return [...bytes, byte]
    bytes.push(byte | 0x80)
  }
}
const list = (items: readonly (readonly number[])[]): number[] => [...size(items.length), ...items.flat()]
const text = (words: string): number[] => {
  const bytes = [...Buffer.from(words)]
  return [...size(bytes.length), ...bytes]
}
const section = (id: number, content: readonly number[]): number[] => [
  id,
  ...size(content.length),
  ...content,
]
const constant = (value: number): number[] => [0x41, ...leb(value)]

const I32 = 0x7f
/** Types by number of i32 parameters; each function gives an i32. */
const ARITIES = [0, 1, 2, 7]
const signature = (parameters: number): number[] => [0x60, ...list(Array(parameters).fill([I32])), 1, I32]

const evalBody = (behaviour: Behaviour): number[] => {
  if (behaviour.kind === 'trap') return [0x00]
  if (behaviour.kind === 'loop') return [0x03, 0x40, 0x0c, 0, 0x0b, ...constant(0)]
  // Grows by 4 MiB until the memory's maximum; a refusal to grow is -1, which ends in a trap.
  if (behaviour.kind === 'grow')
    return [
      ...[0x03, 0x40, ...constant(64), 0x40, 0],
      ...[0x41, 0x7f, 0x46, 0x04, 0x40, 0x00, 0x0b, 0x0c, 0, 0x0b],
      ...constant(0),
    ]
  return constant(ANSWER_AT)
}

export function policyModule(behaviour: Behaviour, entrypoints: readonly string[]): Buffer {
  const functions: readonly [name: string, parameters: number, body: readonly number[]][] = [
    ['builtins', 0, constant(16)],
    ['entrypoints', 0, constant(ENTRYPOINTS_AT)],
    ['opa_malloc', 1, constant(200 * 1024)],
    ['opa_json_parse', 2, constant(8)],
    ['opa_json_dump', 1, [0x20, 0]],
    ['opa_heap_ptr_get', 0, constant(256 * 1024)],
    ['opa_eval', 7, evalBody(behaviour)],
  ]
  const answer = behaviour.kind === 'answer' ? behaviour.text : ''
  const names = JSON.stringify(Object.fromEntries(entrypoints.map((name, index) => [name, index])))
  const data = (at: number, words: string): number[] => [0, ...constant(at), 0x0b, ...text(`${words}\0`)]
  const body = (code: readonly number[]): number[] => {
    const whole = [0, ...code, 0x0b]
    return [...size(whole.length), ...whole]
  }
  const global = (value: number): number[] => [I32, 0, ...constant(value), 0x0b]
  return Buffer.from([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, list(ARITIES.map(signature))),
    ...section(2, list([[...text('env'), ...text('memory'), 2, 0, 2]])),
    ...section(3, list(functions.map(([, parameters]) => [ARITIES.indexOf(parameters)]))),
    ...section(6, list([global(1), global(3)])),
    ...section(
      7,
      list([
        ...functions.map(([name], index) => [...text(name), 0, index]),
        [...text('opa_wasm_abi_version'), 3, 0],
        [...text('opa_wasm_abi_minor_version'), 3, 1],
      ]),
    ),
    ...section(10, list(functions.map(([, , code]) => body(code)))),
    ...section(
      11,
      list([
        data(16, '{}'),
        data(ENTRYPOINTS_AT, names),
        ...(answer === '' ? [] : [data(ANSWER_AT, answer)]),
      ]),
    ),
  ])
}
