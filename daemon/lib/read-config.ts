import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { CONFIG_PATH, type Config, defaultConfig } from './config.ts'
import { errnoOf, PuzzledError } from './errors.ts'
import { defaultStateDirectory } from './state-place.ts'

export async function readConfig(path: string): Promise<Config> {
  let text: string
  try {
    // At once: it is small, and in a command this would be what starts the threads of the pool.
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (errnoOf(error) === 'ENOENT' && path === CONFIG_PATH) return defaultConfig()
    throw new PuzzledError('config-invalid', `Cannot read "${path}"`, { cause: error })
  }
  // Parser and schema are loaded where there is something to read: most commands have no file.
  const { parseConfig } = await import('./config-schema.ts')
  return parseConfig(text, path)
}

/**
 * The store that a command is about: the one it names, or the one of this machine, which is where the configuration of the
 * daemon says; of somebody else than root, their own.
 */
export async function stateDirectory(named: string | null, configuration = CONFIG_PATH): Promise<string> {
  if (named !== null) return resolve(named)
  const uid = process.geteuid?.() ?? 0
  return uid === 0 ? (await readConfig(configuration)).state_dir : defaultStateDirectory(uid, process.env)
}
