import type { Command, Ports, RunningAgent } from './agent/ports.ts'
import type { KernelDenials } from './kernel-denials.ts'
import type { NetworkParts } from './network-parts.ts'
import type { Launcher } from './sandbox/launch.ts'

type Starting = Pick<Launcher, 'start' | 'sweep'>

/** What the kernel refuses to an agent, or to a command that joins it, is heard as long as either runs. */
export const hearing = (launcher: Starting, heard: KernelDenials): Ports['launcher'] => ({
  start: (request) =>
    heard.during(async () => {
      const { id } = request.record
      const { seccomp } = request.profile
      const agent = await launcher.start(request)
      heard.begin(id, seccomp, agent.pid)
      const exited = agent.exited.finally(() => heard.end(id))
      const exec = (wanted: Parameters<RunningAgent['exec']>[0]): Promise<Command> =>
        heard.during(async () => {
          const command = await agent.exec(wanted)
          heard.begin(id, seccomp, command.pid)
          void command.exited.finally(() => heard.end(id, command.pid))
          return command
        })
      return { ...delegate(agent), exited, exec }
    }),
  sweep: (id) => launcher.sweep(id),
})

/** The network of a branch lives exactly as long as its agent. */
export const withNetwork = (
  launcher: Ports['launcher'],
  network: NetworkParts,
  complain: (branch: string) => (error: unknown) => void,
): Ports['launcher'] => ({
  start: async (request) => {
    try {
      const agent = await launcher.start(request)
      const exited = agent.exited.then(async (exit) => {
        await network.close(request.record.id).catch(complain(request.record.id))
        return exit
      })
      return { ...delegate(agent), exited }
    } catch (error) {
      await network.close(request.record.id).catch(complain(request.record.id))
      throw error
    }
  },
  sweep: (id) => launcher.sweep(id),
})

/** `keeps` hears when the first agent has started, and when the last one has ended. */
export function keeping(launcher: Ports['launcher'], keeps: (long: boolean) => void): Ports['launcher'] {
  let running = 0
  return {
    start: async (request) => {
      const agent = await launcher.start(request)
      if (running++ === 0) keeps(true)
      const exited = agent.exited.finally(() => {
        if (--running === 0) keeps(false)
      })
      return { ...delegate(agent), exited }
    },
    sweep: (id) => launcher.sweep(id),
  }
}

/** A plain object in front of the agent: its methods need their own `this`. */
const delegate = (agent: RunningAgent): RunningAgent => ({
  pid: agent.pid,
  grants: agent.grants,
  exited: agent.exited,
  signal: (name) => agent.signal(name),
  kill: (cause) => agent.kill(cause),
  freeze: () => agent.freeze(),
  thaw: () => agent.thaw(),
  readings: () => agent.readings(),
  pressure: (resource) => agent.pressure(resource),
  extend: (kind, limit) => agent.extend(kind, limit),
  exec: (request) => agent.exec(request),
  attach: () => agent.attach(),
  ...(agent.resize === undefined ? {} : { resize: agent.resize }),
  ...(agent.input === undefined ? {} : { input: agent.input }),
  ...(agent.output === undefined ? {} : { output: agent.output }),
  ...(agent.errors === undefined ? {} : { errors: agent.errors }),
})
