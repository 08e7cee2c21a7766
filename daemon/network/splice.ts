import type { Duplex } from 'node:stream'
import type { Gate } from './gate.ts'
import type { CompiledRule } from './request-rule.ts'

/** Sees what the other end says before the agent does; throws where it must not go on. */
export interface Search {
  /** What may be passed on by now. */
  push(chunk: Buffer): Buffer
  /** What was held back until the end. */
  end(): Buffer
}

/** Connects two streams until both have ended: what one of them said last arrives, however slowly the other reads. Bytes count against the rule's budget; a used-up budget cuts the tunnel. */
export function splice(
  gate: Pick<Gate, 'budget'> & { readonly limits: Pick<Gate['limits'], 'tunnelIdleMs'> },
  agent: Duplex,
  upstream: Duplex,
  matched: CompiledRule | undefined,
  host: string,
  search?: Search,
): void {
  let idle: NodeJS.Timeout | undefined
  const cut = (): void => {
    clearTimeout(idle)
    agent.destroy()
    upstream.destroy()
  }
  const alive = (): void => {
    clearTimeout(idle)
    idle = setTimeout(cut, gate.limits.tunnelIdleMs)
    idle.unref()
  }
  const join = (from: Duplex, to: Duplex, direction: 'out' | 'in'): void => {
    from.on('data', (chunk: Buffer) => {
      alive()
      let passed = chunk
      try {
        gate.budget.addBytes(matched, host, direction, chunk.length)
        if (direction === 'in' && search !== undefined) passed = search.push(chunk)
      } catch {
        // The count is exceeded and stays so: the next request to this host is told why. Searches say it themselves.
        cut()
        return
      }
      if (passed.length === 0 || to.write(passed)) return
      from.pause()
      to.once('drain', () => from.resume())
    })
    from.once('end', () => {
      const rest = direction === 'in' ? search?.end() : undefined
      if (rest !== undefined && rest.length > 0) to.write(rest)
      to.end()
    })
    from.on('error', cut)
    from.once('close', () => {
      if (agent.destroyed && upstream.destroyed) clearTimeout(idle)
      // Broken off, or ended from outside: the other has nobody to talk to.
      if (!from.readableEnded || !from.writableFinished) cut()
      // Nobody listens any more to what `to` would answer; it goes when it has taken everything.
      else if (to.writableFinished) to.destroy()
      else to.once('finish', () => to.destroy())
    })
  }
  alive()
  join(agent, upstream, 'out')
  join(upstream, agent, 'in')
}
