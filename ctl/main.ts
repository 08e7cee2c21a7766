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
  const { runCommandLine } = await import('./cli.ts')
  return runCommandLine(argv)
}

process.exitCode = await main(process.argv.slice(2))
