// pure
import { NetworkDenied } from './denial.ts'
import type { CompiledRule } from './request-rule.ts'

export interface NetworkUsage {
  requests: number
  /** Bytes that left and bytes that came back. */
  bytesOut: number
  bytesIn: number
}

/** Counts what each rule let out and in, per host, and stops it at the rule's budget. */
export class BudgetMeter {
  readonly #counts = new Map<string, { requests: number; bytes: number }>()
  readonly total: NetworkUsage = { requests: 0, bytesOut: 0, bytesIn: 0 }

  /** Throws when the request would be one too many. */
  startRequest(matched: CompiledRule | undefined, host: string): void {
    const limit = matched?.rule.budget.requests
    if (limit !== undefined) {
      const count = this.#count(matched, host)
      if (count.requests >= limit) throw this.#exceeded(matched, `${limit} requests to ${host}`)
      count.requests++
    }
    this.total.requests++
  }

  /** Throws when the bytes would be too many; they are counted either way. */
  addBytes(matched: CompiledRule | undefined, host: string, direction: 'out' | 'in', bytes: number): void {
    if (direction === 'out') this.total.bytesOut += bytes
    else this.total.bytesIn += bytes
    const limit = matched?.rule.budget.bytes
    if (limit === undefined) return
    const count = this.#count(matched, host)
    count.bytes += bytes
    if (count.bytes > limit) throw this.#exceeded(matched, `${limit} bytes with ${host}`)
  }

  /** Only where there is a limit: the agent chooses the hosts, and there are more of them than memory. */
  #count(matched: CompiledRule | undefined, host: string): { requests: number; bytes: number } {
    const key = `${matched?.rule.id ?? ''} ${host}`
    const known = this.#counts.get(key)
    if (known !== undefined) return known
    const fresh = { requests: 0, bytes: 0 }
    this.#counts.set(key, fresh)
    return fresh
  }

  #exceeded(matched: CompiledRule | undefined, what: string): NetworkDenied {
    const id = matched?.rule.id ?? 'budget'
    return new NetworkDenied(429, id, `Rule "${id}" has a budget of ${what}, and it is used up`, {
      help: `network.rules: {id: ${id}, budget: {…}}`,
    })
  }
}
