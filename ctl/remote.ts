import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { isatty } from 'node:tty'
import { errnoOf, PuzzledError } from '../daemon/lib/errors.ts'
import { patienceSeconds } from './liveness.ts'
import { remoteCommand } from './remote-words.ts'

/** What ssh ends with when it fails itself. */
export const SSH_FAILED = 255

export const sshFailed = (host: string): PuzzledError =>
  new PuzzledError('bus-gone', `ssh did not get to "${host}", or lost it (status ${SSH_FAILED})`, {
    hint: `What ssh itself says: ssh ${host} true`,
  })

/**
 * Nothing that ssh would take for an option, and no character that means something to a shell: a ProxyCommand of the
 * caller's own configuration hands the name to one.
 */
const isMachine = (host: string): boolean => host !== '' && !/^-|@-|[\s\p{Cc}'"`$\\;&|<>(){}*?!#]/u.test(host)

/** A machine or a network that is gone without a word ends the call, as a daemon does that does not answer. */
const KEEP_ALIVE = [
  ...['-o', `ServerAliveInterval=${Math.ceil(patienceSeconds() / 3)}`],
  ...['-o', 'ServerAliveCountMax=3'],
]

/**
 * Runs `puzzlectl` on another machine, as `systemctl --host` does: its streams are ours, its exit status too. Who may do
 * what is decided there.
 */
export function runRemote(host: string, words: readonly string[]): Promise<number> {
  if (!isMachine(host))
    throw new PuzzledError('usage', `--host ${JSON.stringify(host)} is not a machine`, {
      hint: 'Write --host machine or --host user@machine, as for ssh.',
    })
  // With a terminal of its own what runs there can ask questions; without one the two outputs stay apart.
  const terminal = [0, 1, 2].every((fd) => isatty(fd)) ? '-t' : '-T'
  const child = spawn('ssh', [terminal, ...KEEP_ALIVE, '--', host, remoteCommand(words)], {
    stdio: 'inherit',
  })
  const passOn = (signal: NodeJS.Signals): void => void child.kill(signal)
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  for (const signal of signals) process.on(signal, passOn)
  return new Promise<number>((resolve, reject) => {
    child.on('error', (cause) =>
      reject(
        errnoOf(cause) === 'ENOENT'
          ? new PuzzledError('feature-missing', '--host needs the program ssh, and it is not installed', {
              hint: 'apt-get install openssh-client',
            })
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
