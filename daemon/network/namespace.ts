import { closeSync, existsSync } from 'node:fs'
import { bringLoopbackUp, makeEverythingLocal } from '../kernel/netlink.ts'
import {
  bindUdp,
  createNetns,
  insideNetns,
  listenTcp,
  openOwnNetns,
  type SocketPlace,
  setNetSysctl,
} from '../kernel/netns.ts'
import { withNft } from '../kernel/nft.ts'
import { PuzzledError } from '../lib/errors.ts'
import { PROXY_PORT } from './namespace-ports.ts'
import { type DropReason, LIST_COUNTERS, readCounters, ruleset } from './ruleset.ts'

export interface Listeners {
  /** 127.0.0.1:3128. */
  readonly explicit: number
  /** One per port of the profile, on every address of both families. */
  readonly transparent: readonly { readonly port: number; readonly fd: number }[]
  /** UDP and TCP on 127.0.0.1:53 and ::1:53. */
  readonly names: {
    readonly udp: readonly { readonly family: 4 | 6; readonly fd: number }[]
    readonly tcp: readonly number[]
  }
  readonly exposed: readonly number[]
}

/** A namespace for one agent: loopback only. The launcher moves the agent into it with `setns`. */
export function prepareNetns(): { fd: number } {
  return { fd: createNetns() }
}

const LOOPBACK4 = Uint8Array.from([127, 0, 0, 1])
const LOOPBACK6 = Uint8Array.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
const ANY6 = new Uint8Array(16)

export class AgentNetns {
  readonly listeners: Listeners
  #namespace: number | undefined

  private constructor(listeners: Listeners, namespace: number) {
    this.listeners = listeners
    this.#namespace = namespace
  }

  /**
   * Sets the namespace up and opens every socket of the gate in it, in one visit: no step of it waits. `fd` is a
   * namespace descriptor or a pidfd. The descriptors in `listeners` belong to the caller.
   */
  static open(fd: number, ports: readonly number[], exposed: readonly SocketPlace[]): AgentNetns {
    return insideNetns(fd, () => {
      bringLoopbackUp()
      makeEverythingLocal(4)
      makeEverythingLocal(6)
      hardenKernel()
      const opened: number[] = []
      const keep = (socket: number): number => {
        opened.push(socket)
        return socket
      }
      try {
        withNft((nft) => nft.run(ruleset([...ports, ...exposed.map((place) => place.port)])))
        return new AgentNetns(openListeners(ports, exposed, keep), keep(openOwnNetns()))
      } catch (error) {
        for (const socket of opened) closeSync(socket)
        throw error
      }
    })
  }

  /** Packets that went nowhere, per reason. */
  dropped(): ReadonlyMap<DropReason, number> {
    if (this.#namespace === undefined) throw new PuzzledError('internal', 'The namespace was let go')
    return readCounters(insideNetns(this.#namespace, () => withNft((nft) => nft.run(LIST_COUNTERS))))
  }

  /** May be called again. */
  release(): void {
    const namespace = this.#namespace
    this.#namespace = undefined
    if (namespace !== undefined) closeSync(namespace)
  }
}

function openListeners(
  ports: readonly number[],
  exposed: readonly SocketPlace[],
  keep: (fd: number) => number,
): Listeners {
  const at = (family: 4 | 6, port: number): SocketPlace => ({
    family,
    address: family === 4 ? LOOPBACK4 : LOOPBACK6,
    port,
  })
  return {
    explicit: keep(listenTcp(at(4, PROXY_PORT))),
    transparent: ports.map((port) => ({
      port,
      fd: keep(listenTcp({ family: 6, address: ANY6, port }, { dual: true })),
    })),
    names: {
      udp: [
        { family: 4, fd: keep(bindUdp(at(4, 53))) },
        { family: 6, fd: keep(bindUdp(at(6, 53))) },
      ],
      tcp: [keep(listenTcp(at(4, 53))), keep(listenTcp(at(6, 53)))],
    },
    exposed: exposed.map((place) => keep(listenTcp(place))),
  }
}

/** Multipath TCP could carry data past rules that look at TCP only (S32); where the kernel lacks it there is no file. */
function hardenKernel(): void {
  if (existsSync('/proc/sys/net/mptcp/enabled')) setNetSysctl('mptcp/enabled', '0')
}
