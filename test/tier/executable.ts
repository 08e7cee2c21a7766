import { accessSync, constants } from 'node:fs'

/** Whether we could run what is at this path. */
export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    // Not there, or not for us: the same for whoever asks.
    return false
  }
}
