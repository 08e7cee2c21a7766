// pure
import type { Hostname } from './hostname.ts'
import { matchesHost } from './hostname.ts'
import type { CompiledRules } from './request-rule.ts'

export type NameVerdict =
  | { readonly ok: true }
  | { readonly ok: false; readonly rule: string; readonly reason: string; readonly help?: string }

/** New names below a star, per minute; names that a rule spells out are not counted. */
const NEW_NAMES_PER_MINUTE = 120
const MAX_LABEL = 50
const MAX_LABELS = 10
/** Bits per character over which a long label is taken for data: words stay below 3.5, base32 is near 4.5. */
const MAX_ENTROPY = 4.2
const LONG = 28

/**
 * A name that is resolved carries its labels to whoever runs its zone, before any request is judged (S34). Names that
 * a rule spells out carry nothing; those that only a star or `open-read` allows are limited in shape and rate.
 */
export class NameGuard {
  readonly #rules: CompiledRules
  readonly #known = new Set<string>()
  /** Names that rules spell out, which are as many as the rules have. */
  readonly #exact = new Set<string>()
  #minute = 0
  #fresh = 0

  constructor(rules: CompiledRules) {
    this.#rules = rules
  }

  /** `minute` is any clock in minutes. */
  check(host: Hostname, minute: number): NameVerdict {
    if (this.#exact.has(host.text)) return { ok: true }
    if (this.#rules.mode === 'none')
      return { ok: false, rule: 'no-network', reason: 'This branch has no network' }
    const patterns = this.#rules.rules
      .filter(({ rule }) => rule.class !== 'deny')
      .flatMap((rule) => rule.hosts)
      .filter((pattern) => matchesHost(pattern, host))
    if (patterns.length === 0 && this.#rules.mode !== 'open-read')
      return {
        ...{ ok: false, rule: 'no-rule', reason: `No rule names the host "${host.text}"` },
        help: namingRule(host),
      }
    if (host.address !== undefined) return { ok: true }
    if (patterns.some((pattern) => pattern.kind === 'exact')) {
      this.#exact.add(host.text)
      return { ok: true }
    }
    const odd = oddShape(host.text)
    if (odd !== undefined)
      return { ok: false, rule: 'name-shape', reason: `"${host.text}" ${odd}`, help: namingRule(host) }
    if (this.#known.has(host.text)) return { ok: true }
    if (minute !== this.#minute) {
      this.#minute = minute
      this.#fresh = 0
    }
    if (++this.#fresh > NEW_NAMES_PER_MINUTE)
      return {
        ok: false,
        rule: 'name-rate',
        reason: `More than ${NEW_NAMES_PER_MINUTE} new names in one minute`,
      }
    this.#known.add(host.text)
    return { ok: true }
  }
}

/** A rule that spells the name out, as a line to paste into the profile. */
const namingRule = (host: Hostname): string => `network.rules: {hosts: [${JSON.stringify(host.text)}], …}`

function oddShape(name: string): string | undefined {
  const labels = name.split('.')
  if (labels.length > MAX_LABELS) return `has more than ${MAX_LABELS} labels`
  for (const label of labels) {
    if (label.length > MAX_LABEL) return `has a label of more than ${MAX_LABEL} characters`
    if (label.length >= LONG && entropy(label) > MAX_ENTROPY) return 'has a label that looks like data'
  }
  return undefined
}

/** Shannon entropy in bits per character. */
export function entropy(text: string): number {
  const counts = new Map<string, number>()
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1)
  let bits = 0
  for (const count of counts.values()) bits -= (count / text.length) * Math.log2(count / text.length)
  return bits
}
