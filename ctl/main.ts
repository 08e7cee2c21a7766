import { compileCache, keepCompiled } from '../daemon/lib/compile-cache.ts'
import { VERSION } from './version.ts'

/**
 * The only place that ends the process. `--version` is answered here, before anything else is loaded: it is what
 * package managers and scripts call.
 */
async function main(argv: readonly string[]): Promise<number> {
  if (argv.length === 1 && (argv[0] === '--version' || argv[0] === '-V')) {
    process.stdout.write(`puzzlectl ${VERSION}\n`)
    return 0
  }
  process.once('exit', keepCompiled(`${__dirname}/chunks`, compileCache(process.env, process.geteuid?.())))
  const { runCommandLine } = await import('./cli.ts')
  return runCommandLine(argv)
}

void main(process.argv.slice(2)).then((status) => {
  process.exitCode = status
})
