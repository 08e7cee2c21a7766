import { type SpawnOptions, spawn } from 'node:child_process'

/** The environment of a measured program: no setting of the caller's may cost one of the candidates more than another. */
export const plainEnvironment = (more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv => ({
  PATH: process.env.PATH,
  HOME: process.env.HOME ?? '/root',
  ...more,
})

/** Runs a program to its end; anything but success is an error. Its output goes nowhere. */
export function toSuccess(argv: readonly string[], options: SpawnOptions = {}): Promise<void> {
  const [program = '', ...args] = argv
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      env: plainEnvironment(),
      ...options,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let said = ''
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
    child.on('error', reject)
    child.on('close', (code, signal) => {
      if (code === 0) resolve()
      else reject(new Error(`${argv.join(' ')} ended with ${code ?? signal}: ${said.slice(-500)}`))
    })
  })
}

/** Candidates that work here; one that is installed and does not run is named, not compared. */
export async function working(
  candidates: Readonly<Record<string, () => Promise<void>>>,
  missing: (peer: string, how: string) => void,
): Promise<Record<string, () => Promise<void>>> {
  const found: Record<string, () => Promise<void>> = {}
  for (const [name, run] of Object.entries(candidates))
    try {
      await run()
      found[name] = run
    } catch (error) {
      missing(
        name,
        `it is installed and does not run here: ${error instanceof Error ? error.message : error}`,
      )
    }
  return found
}
