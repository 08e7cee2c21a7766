/** The few things that we need of the engine's `WebAssembly`, which the library of types for Node does not declare. */
interface Engine {
  Module: new (bytes: Uint8Array) => object
}

export const engine = (globalThis as unknown as { WebAssembly: Engine }).WebAssembly

/** Size of one page of WebAssembly memory. */
export const PAGE_BYTES = 64 * 1024
