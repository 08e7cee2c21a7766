import { BRANCH_INTERFACE, MANAGER_INTERFACE } from '../daemon/contract/bus.ts'
import type { BusConnection } from '../daemon/lib/bus-connection.ts'
import type { TellProgress } from '../daemon/lib/progress.ts'

const FACES = [BRANCH_INTERFACE, MANAGER_INTERFACE]

/** Hands on what the daemon says about our calls while they last. Only the daemon is believed: anybody can send a signal. */
export function watchProgress(connection: BusConnection, daemon: string, tell: TellProgress): void {
  connection.onSignal(({ sender, member, interface: face = '', body = [] }) => {
    if (sender !== daemon || member !== 'Progress' || !FACES.includes(face)) return
    const [, done, total] = body.map(Number)
    if (done !== undefined && total !== undefined) tell(done, total === 0 ? null : total)
  })
}
