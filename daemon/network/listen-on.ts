import type { Server } from 'node:net'

/**
 * Serves a socket that listens already. The descriptor belongs to the server from the moment of the call. What goes
 * wrong later, as when the process has no descriptor left for one more connection, must not end the daemon.
 */
export function listenOn(server: Server, fd: number): Promise<void> {
  return new Promise((ready, failed) => {
    server.once('error', failed)
    server.listen({ fd, exclusive: true }, () => {
      server.on('error', () => undefined)
      server.removeListener('error', failed)
      ready()
    })
  })
}
