import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Notes } from '../harness.ts'
import { howToInstall, sandboxRuntime } from '../peers.ts'

/** Another proxy, as its users start it, without caches, logs and checks that ours would not have either. */
export interface Peer {
  readonly name: string
  readonly port: number
  /** Whether it ends TLS and reads the requests, as the gate does. */
  readonly reads: boolean
}

const SANDBOX_RUNTIME = join(
  sandboxRuntime(),
  'node_modules/@anthropic-ai/sandbox-runtime/dist/sandbox/http-proxy.js',
)

const programs: Readonly<
  Record<string, { reads: boolean; argv: (port: number, directory: string) => string[] | undefined }>
> = {
  mitmproxy: {
    reads: true,
    argv: (port, directory) =>
      found('mitmdump')
        ? [
            'mitmdump',
            ...['-q', '--listen-host', '127.0.0.1', '-p', String(port), '--ssl-insecure'],
            ...['--set', `confdir=${join(directory, 'mitmproxy')}`, '--set', 'connection_strategy=lazy'],
          ]
        : undefined,
  },
  squid: {
    reads: false,
    argv: (port, directory) => {
      if (!found('squid')) return undefined
      const file = join(directory, 'squid.conf')
      const lines = [
        `http_port 127.0.0.1:${port}`,
        ...['http_access allow all', 'cache deny all', 'access_log none', 'cache_log /dev/null'],
        ...['cache_store_log none', 'pid_filename none', 'shutdown_lifetime 0 seconds', 'pinger_enable off'],
      ]
      writeFileSync(file, `${lines.join('\n')}\n`)
      return ['squid', '-N', '-f', file]
    },
  },
  'sandbox-runtime': {
    reads: false,
    argv: (port) =>
      existsSync(SANDBOX_RUNTIME)
        ? [
            process.execPath,
            '--input-type=module',
            '-e',
            `import { createHttpProxyServer } from ${JSON.stringify(SANDBOX_RUNTIME)}
             createHttpProxyServer({ filter: () => true }).listen(${port}, '127.0.0.1')`,
          ]
        : undefined,
  },
}

const PROGRAM_OF: Readonly<Record<string, string>> = { mitmproxy: 'mitmdump', 'sandbox-runtime': 'srt' }

/** Starts what is installed and notes what is not. */
export async function startPeers(
  directory: string,
  keep: (child: ChildProcess) => ChildProcess,
  notes: Notes,
): Promise<readonly Peer[]> {
  const peers: Peer[] = []
  for (const [name, { reads, argv }] of Object.entries(programs)) {
    const port = await freePort()
    const [file, ...args] = argv(port, directory) ?? []
    if (file === undefined) {
      notes.missing(name, howToInstall(PROGRAM_OF[name] ?? name))
      continue
    }
    keep(spawn(file, args, { stdio: ['ignore', 'ignore', 'inherit'] }))
    if (await answers(port)) peers.push({ name, port, reads })
    else notes.missing(name, 'it is installed and did not start')
  }
  return peers
}

const found = (program: string): boolean =>
  `${process.env.PATH}:/usr/sbin`.split(':').some((folder) => existsSync(join(folder, program)))

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  const { port } = server.address() as { port: number }
  await new Promise((done) => server.close(done))
  return port
}

async function answers(port: number): Promise<boolean> {
  for (let tries = 0; tries < 200; tries++) {
    const open = await new Promise<boolean>((done) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.destroy()
        done(true)
      })
      socket.on('error', () => done(false))
    })
    if (open) return true
    await setTimeout(50)
  }
  return false
}
