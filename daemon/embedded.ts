import type { Engine } from './contract/engine.ts'
import { PuzzledError } from './lib/errors.ts'

export interface EmbeddedOptions {
  stateDir: string | null
}

/** The engine in the caller's process, on the same store as the daemon's. */
export async function openEmbedded(_options: EmbeddedOptions): Promise<Engine> {
  throw new PuzzledError('feature-missing', 'The embedded engine is being built')
}
