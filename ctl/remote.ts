import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { isatty } from 'node:tty'
import { errnoOf, PuzzledError } from '../daemon/lib/errors.ts'
import { quotedWord } from './remote-words.ts'

/**
 * Runs `puzzlectl` on another machine, as `systemctl --host` does: its streams are ours, its exit status too. Who may do
 * what is decided there. 255 is the status of an ssh that failed itself.
 */
export function runRemote(host: string, words: readonly string[]): Promise<number> {
  if (host === '' || host.startsWith('-') || /[\s\p{Cc}]/u.test(host))
    throw new PuzzledError('usage', `--host ${JSON.stringify(host)} is not a machine`, {
      hint: 'Write --host machine or --host user@machine, as for ssh.',
    })
  const command = ['puzzlectl', ...words.map(quotedWord)].join(' ')
  // With a terminal of its own what runs there can ask questions; without one the two outputs stay apart.
  const terminal = [0, 1, 2].every((fd) => isatty(fd)) ? '-t' : '-T'
  const child = spawn('ssh', [terminal, '--', host, command], { stdio: 'inherit' })
  const passOn = (signal: NodeJS.Signals): void => void child.kill(signal)
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const signal of signals) process.on(signal, passOn)
  return new Promise<number>((resolve, reject) => {
    child.on('error', (cause) =>
      reject(
        errnoOf(cause) === 'ENOENT'
          ? new PuzzledError('feature-missing', '--host needs the program ssh, and it is not installed')
          : cause,
      ),
    )
    child.on('close', (code, signal) =>
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])),
    )
  }).finally(() => {
    for (const signal of signals) process.off(signal, passOn)
  })
}
