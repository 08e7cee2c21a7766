/** The few things that we need of the engine's `WebAssembly`, which the library of types for Node does not declare. */
export interface CompiledModule {
  readonly [Symbol.toStringTag]: string
}

interface Engine {
  /** Compiles on another thread; rejects with a `CompileError`. */
  compile(bytes: Uint8Array): Promise<CompiledModule>
  Module: { exports(module: CompiledModule): { name: string; kind: string }[] }
}

export const engine = (globalThis as unknown as { WebAssembly: Engine }).WebAssembly

/** Size of one page of WebAssembly memory. */
export const PAGE_BYTES = 64 * 1024
