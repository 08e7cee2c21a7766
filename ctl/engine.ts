import { existsSync } from 'node:fs'
import type { Engine } from '../daemon/contract/engine.ts'
import { requester } from './requester.ts'

/**
 * The daemon when one answers on the bus, otherwise the same engine in this process. A store that was named on the
 * command line is always opened here: the daemon has its own.
 */
export async function connectEngine(stateDir: string | null): Promise<Engine> {
  const daemon = stateDir === null ? await connectDaemon() : null
  if (daemon !== null) return daemon
  const { openEmbedded } = await import('../daemon/embedded.ts')
  return openEmbedded({ stateDir, requester: requester() })
}

const DEFAULT_SOCKET = '/run/dbus/system_bus_socket'

/** Null when there is no bus or nobody owns the name. Asking costs a connect, not a start of the daemon. */
export async function connectDaemon(): Promise<Engine | null> {
  const address = process.env.DBUS_SYSTEM_BUS_ADDRESS
  if (address === undefined && !existsSync(DEFAULT_SOCKET)) return null
  const { BusConnection } = await import('../daemon/lib/bus-connection.ts')
  let connection: Awaited<ReturnType<typeof BusConnection.connect>>
  try {
    connection = await BusConnection.connect(address)
  } catch {
    // No bus is the ordinary case of a machine without the daemon; what is wrong with it is `doctor`'s business.
    return null
  }
  const { BusEngine } = await import('./bus-engine.ts')
  const engine = await BusEngine.open(connection)
  if (engine === null) await connection.close()
  return engine
}
