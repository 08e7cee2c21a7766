import type { RunRequest } from '../daemon/contract/engine.ts'
import { ownEnvironment } from './environment-option.ts'
import { requester } from './requester.ts'
import { workingDirectory } from './working-directory.ts'

/** What `puzzlectl run -- COMMAND` asks for: the working directory is the base, the standard profile, then the gate. */
export function runRequest(command: readonly string[], change: Partial<RunRequest> = {}): RunRequest {
  const cwd = change.cwd ?? workingDirectory()
  return {
    bases: [cwd],
    profile: 'standard',
    name: null,
    afterwards: 'gate',
    command,
    cwd,
    requester: requester(),
    budgets: {},
    environment: ownEnvironment(),
    setEnvironment: {},
    stdio: { kind: 'pipes' },
    ...change,
  }
}
