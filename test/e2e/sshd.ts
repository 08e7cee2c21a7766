import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Missing, program, root } from '../tier/needs.ts'
import { end, eventually } from './private-bus.ts'

/** In the network of the test's own room nobody else listens. */
const PORT = 2222
/** Debian's place; a server of OpenSSH before 9.8 insists on it. */
const PRIVSEP = '/run/sshd'

const privsepUser: Missing = /^sshd:/m.test(readFileSync('/etc/passwd', 'utf8'))
  ? undefined
  : 'needs the user sshd (package openssh-server)'
export const noSshd: readonly Missing[] = [
  root,
  program('ssh'),
  program('ssh-keygen'),
  program('sshd'),
  privsepUser,
]

export interface OtherMachine {
  /** First in the PATH of whoever calls: an `ssh` that knows the machine "there" and asks nothing. */
  readonly bin: string
  /** First in the PATH that the login gets. */
  readonly there: string
  close(): Promise<void>
}

/** A server with keys and a configuration of its own on loopback; nothing of the machine's own ssh is read or written. */
export async function otherMachine(): Promise<OtherMachine> {
  const folder = mkdtempSync(join(tmpdir(), 'puzzled-sshd-'))
  const place = (name: string): string => join(folder, name)
  for (const name of ['bin', 'there']) mkdirSync(place(name))
  for (const name of ['host', 'user'])
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', place(name)])
  writeFileSync(place('sshd_config'), serverConfig(place))
  writeFileSync(place('ssh_config'), clientConfig(place))
  writeFileSync(place('bin/ssh'), `#!/bin/sh\nexec '${pathOf('ssh')}' -F '${place('ssh_config')}' "$@"\n`)
  chmodSync(place('bin/ssh'), 0o755)
  const made = !existsSync(PRIVSEP)
  if (made) mkdirSync(PRIVSEP, { mode: 0o755 })
  const server: ChildProcess = spawn(pathOf('sshd'), ['-D', '-e', '-f', place('sshd_config')], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  server.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  await eventually(() => answers(PORT)).catch((cause: unknown) => {
    throw new Error(`sshd does not answer: ${said}`, { cause })
  })
  return {
    bin: place('bin'),
    there: place('there'),
    close: async () => {
      await end(server, 'SIGTERM')
      if (made) rmSync(PRIVSEP, { recursive: true })
      rmSync(folder, { recursive: true })
    },
  }
}

const pathOf = (name: string): string =>
  execFileSync('sh', ['-c', `PATH="$PATH:/usr/sbin:/sbin" command -v ${name}`], { encoding: 'utf8' }).trim()

const serverConfig = (place: (name: string) => string): string => `Port ${PORT}
ListenAddress 127.0.0.1
HostKey ${place('host')}
AuthorizedKeysFile ${place('user.pub')}
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
SetEnv PATH=${place('there')}:/usr/bin:/bin
`

const clientConfig = (place: (name: string) => string): string => `Host nobody-there
  HostName 127.0.0.2
Host there
  HostName 127.0.0.1
Host *
  Port ${PORT}
  User root
  IdentityFile ${place('user')}
  IdentitiesOnly yes
  BatchMode yes
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
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
