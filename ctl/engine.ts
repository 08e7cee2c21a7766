import { existsSync } from 'node:fs'
import type { Engine, EngineReader } from '../daemon/contract/engine.ts'
import type { BusEngine } from './bus-engine.ts'
import { tellProgress } from './progress.ts'
import { requester } from './requester.ts'
import { inTurn, isLocked, PATIENCE_MS } from './turn.ts'

/**
 * The daemon when one answers on the bus, otherwise the same engine in this process. A store that was named on the
 * command line is always opened here: the daemon has its own.
 */
export async function connectEngine(stateDir: string | null, patience = PATIENCE_MS): Promise<Engine> {
  const daemon = stateDir === null ? await connectDaemon() : null
  if (daemon !== null) return daemon
  const { openEmbedded } = await import('../daemon/embedded.ts')
  const open = () => openEmbedded({ stateDir, requester: requester(), tell: tellProgress })
  return inTurn(open, patience, undefined, tellPerson)
}

function tellPerson(sentence: string): void {
  if (process.stderr.isTTY === true) process.stderr.write(`puzzlectl: ${sentence}\n`)
}

/** For verbs that only look: they also work while another process uses the store. */
export async function connectReader(stateDir: string | null): Promise<EngineReader> {
  try {
    return await connectEngine(stateDir, 0)
  } catch (error) {
    if (!isLocked(error)) throw error
    const { openReader } = await import('../daemon/reading.ts')
    return openReader(stateDir)
  }
}

const DEFAULT_SOCKET = '/run/dbus/system_bus_socket'

/** Null when there is no bus or nobody owns the name. Asking costs a connect, not a start of the daemon. */
export async function connectDaemon(): Promise<BusEngine | null> {
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
  const { BusEngine: Client } = await import('./bus-engine.ts')
  const engine = await Client.open(connection, tellProgress)
  if (engine === null) await connection.close()
  return engine
}
