import type { Engine } from '../daemon/contract/engine.ts'

/** The engine of this process on the store. */
export async function connectEngine(stateDir: string | null): Promise<Engine> {
  const { openEmbedded } = await import('../daemon/embedded.ts')
  return openEmbedded({ stateDir })
}
