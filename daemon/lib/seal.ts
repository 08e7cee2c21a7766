/** What JSON, structured clones and our own code are made of. */
const INTRINSICS = [
  ...[
    'Object',
    'Function',
    'Array',
    'String',
    'Number',
    'Boolean',
    'Symbol',
    'BigInt',
    'RegExp',
    'Date',
    'Promise',
  ],
  ...[
    'Map',
    'Set',
    'WeakMap',
    'WeakSet',
    'Error',
    'TypeError',
    'RangeError',
    'ArrayBuffer',
    'DataView',
    'Uint8Array',
  ],
]

/**
 * Nothing can be added to the prototypes that every object shares, and none can be reached by the name `__proto__`: a
 * key that somebody else chose is a key and nothing more. What is there can still be overwritten on an object of one's
 * own, which freezing would forbid and programs do. Comes after everything is loaded.
 */
export function sealPrototypes(world: object = globalThis): void {
  for (const name of INTRINSICS) {
    const { prototype } = (world as Record<string, { prototype: object }>)[name] ?? {}
    if (prototype === undefined) throw new Error(`There is no ${name}`)
    if (name === 'Object') Reflect.deleteProperty(prototype, '__proto__')
    Object.preventExtensions(prototype)
  }
}
