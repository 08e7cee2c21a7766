import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { UndoStack } from '../lib/undo.ts'
import type { Targets } from './acts.ts'

export interface Outside {
  readonly targets: Targets
  /** TCP port of the service of the host. */
  readonly port: number
  /** Connections that any of the services received. */
  visits(): number
}

/**
 * Things of the host that the attacks are done to, made for this: files, a program, services and a process. Nothing real
 * is touched, whatever an attack manages.
 */
export async function makeOutside(
  directory: string,
  program: string,
  user: { uid: number; gid: number },
  undo: UndoStack,
): Promise<Outside> {
  mkdirSync(directory)
  chmodSync(directory, 0o755)
  const place = (name: string): string => join(directory, name)
  writeFileSync(place('file'), 'everybody may write here\n')
  chmodSync(place('file'), 0o666)
  copyFileSync(program, place('tool'))
  chmodSync(place('tool'), 0o755)
  let visits = 0
  const service = async (where: string | 0): Promise<number> => {
    const server = createServer((socket) => {
      visits++
      socket.on('error', () => undefined).destroy()
    })
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      if (where === 0) server.listen(0, '127.0.0.1', resolve)
      else server.listen(where, resolve)
    })
    undo.push('close a service', () => new Promise<void>((resolve) => server.close(() => resolve())))
    const address = server.address()
    return address !== null && typeof address === 'object' ? address.port : 0
  }
  const abstract = `puzzled-prove-${process.pid}`.padEnd(ABSTRACT_BYTES, '-')
  await service(place('service.sock'))
  chmodSync(place('service.sock'), 0o666)
  await service(`\0${abstract}`)
  const port = await service(0)
  return {
    port,
    visits: () => visits,
    targets: {
      read: place('file'),
      write: place('file'),
      execute: place('tool'),
      socket: place('service.sock'),
      abstract,
      tcp: String(port),
      packet: '-',
      ...(await neighbour(user, undo)),
      mount: '/tmp',
      userns: '/tmp',
      device: 'made-device',
    },
  }
}

/** As long as a name can be: Node fills shorter ones up with NUL, which are part of such a name. */
const ABSTRACT_BYTES = 107

/** A process of the agent's user that does nothing. */
async function neighbour(
  user: { uid: number; gid: number },
  undo: UndoStack,
): Promise<{ kill: string; trace: string }> {
  const child = spawn('/bin/sleep', ['3600'], { ...user, stdio: 'ignore', cwd: '/' })
  await once(child, 'spawn')
  undo.push('end the neighbour', async () => {
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  })
  return { kill: String(child.pid), trace: String(child.pid) }
}
