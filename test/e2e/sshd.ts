import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Missing, program, root } from '../tier/needs.ts'
import { end, eventually } from './private-bus.ts'

/** In the network of the test's own room nobody else listens. */
const PORT = 2222

export const noSshd: readonly Missing[] = [root, ...['ssh', 'ssh-keygen', 'dropbear'].map(program)]

export interface OtherMachine {
  /**
   * First in the PATH of whoever calls: an `ssh` that asks nothing and knows the machine "there"; "impostor", which has
   * another key than is known of it; "stranger", where the key of the caller is not; and "nobody-there".
   */
  readonly bin: string
  /** First in the PATH that a login gets. */
  readonly there: string
  /** Does this to the server's end of every connection. */
  signalConnections(signal: NodeJS.Signals): void
  close(): Promise<void>
}

/**
 * A server with keys of its own on loopback: nothing of the machine's own ssh is read or written. Logins are those of
 * root, whose home is another one for this room; `env` is what they get besides a PATH.
 */
export async function otherMachine(env: Readonly<Record<string, string>> = {}): Promise<OtherMachine> {
  const folder = mkdtempSync(join(tmpdir(), 'puzzled-sshd-'))
  const place = (name: string): string => join(folder, name)
  for (const name of ['bin', 'there', 'home', 'home/.ssh']) mkdirSync(place(name), { mode: 0o700 })
  for (const name of ['user', 'other'])
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', place(name)])
  execFileSync('dropbearkey', ['-t', 'ed25519', '-f', place('host')], { stdio: 'ignore' })
  const command = script(place('login'), loginOf(place, env))
  writeFileSync(place('home/.ssh/authorized_keys'), `command="${command}" ${text(place('user.pub'))}`, {
    mode: 0o600,
  })
  writeFileSync(place('known_hosts'), knownHosts(place))
  writeFileSync(place('ssh_config'), clientConfig(place))
  script(place('bin/ssh'), `exec '${pathOf('ssh')}' -F '${place('ssh_config')}' "$@"`)
  writeFileSync(
    place('passwd'),
    text('/etc/passwd').replace(/^(root:.*:)[^:]*:[^:]*$/m, `$1${place('home')}:/bin/sh`),
  )
  execFileSync('mount', ['--bind', place('passwd'), '/etc/passwd'])
  const address = ['-p', `127.0.0.1:${PORT}`, '-r', place('host'), '-P', place('pid')]
  const server = spawn(pathOf('dropbear'), ['-F', '-E', '-s', '-m', ...address], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  server.stderr?.setEncoding('utf8').on('data', (words: string) => {
    said += words
  })
  const close = async (): Promise<void> => {
    for (const pid of connectionsOf(server)) process.kill(pid, 'SIGKILL')
    await end(server, 'SIGTERM')
    execFileSync('umount', ['/etc/passwd'])
    rmSync(folder, { recursive: true })
  }
  try {
    await eventually(() => answers(PORT))
  } catch (cause) {
    await close()
    throw new Error(`dropbear does not answer: ${said}`, { cause })
  }
  return {
    bin: place('bin'),
    there: place('there'),
    signalConnections: (signal) => {
      for (const pid of connectionsOf(server)) process.kill(pid, signal)
    },
    close,
  }
}

type Place = (name: string) => string
const text = (path: string): string => readFileSync(path, 'utf8')
const pathOf = (name: string): string =>
  execFileSync('sh', ['-c', `PATH="$PATH:/usr/sbin:/sbin" command -v ${name}`], { encoding: 'utf8' }).trim()

export function script(path: string, lines: string): string {
  writeFileSync(path, `#!/bin/sh\n${lines}\n`)
  chmodSync(path, 0o755)
  return path
}

/** The server serves each connection in a child. */
function connectionsOf({ pid }: ChildProcess): number[] {
  const parentOf = (child: string): number => {
    try {
      return Number(/\) \S (\d+) /.exec(text(`/proc/${child}/stat`))?.[1])
    } catch {
      // It has ended meanwhile.
      return 0
    }
  }
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && parentOf(name) === pid)
    .map(Number)
}

/** As a server does that knows of no such command: the shell of the login gets it. */
const loginOf = (place: Place, env: Readonly<Record<string, string>>): string =>
  [
    ...Object.entries({ PATH: `${place('there')}:/usr/bin:/bin`, ...env }).map(
      ([name, value]) => `export ${name}='${value}'`,
    ),
    'exec sh -c "$SSH_ORIGINAL_COMMAND"',
  ].join('\n')

function knownHosts(place: Place): string {
  const key = (file: string): string => text(place(file)).split(' ').slice(0, 2).join(' ')
  const own = execFileSync('dropbearkey', ['-y', '-f', place('host')], { encoding: 'utf8' })
  const host = /^(ssh-ed25519 \S+)/m.exec(own)?.[1] ?? ''
  return `there,stranger ${host}\nimpostor ${key('other.pub')}\n`
}

const clientConfig = (place: Place): string => `Host nobody-there
  HostName 127.0.0.2
Host stranger
  HostKeyAlias stranger
  IdentityFile ${place('other')}
Host impostor
  HostKeyAlias impostor
Host there
  HostKeyAlias there
Host * !stranger
  IdentityFile ${place('user')}
Host *
  HostName 127.0.0.1
  Port ${PORT}
  User root
  IdentitiesOnly yes
  BatchMode yes
  StrictHostKeyChecking yes
  UserKnownHostsFile ${place('known_hosts')}
  GlobalKnownHostsFile /dev/null
  LogLevel ERROR
`

function answers(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve()
    }).on('error', reject)
  })
}
