// pure
import type { FeatureRow } from '../contract/features.ts'
import { ACT_NAMES, ACTS, type Act, type ActResults } from './acts.ts'
import type { Layer } from './without.ts'

export interface ProvenAttack {
  attack: Act
  words: string
  /** In an ordinary branch. */
  result: string
  /** Without any layer: unless it is `OK`, the attack proves nothing here. */
  control: string
  /** With nothing but this layer. */
  alone: Readonly<Partial<Record<Layer, string>>>
  /** The layers each of which stops it alone. */
  stoppedBy: readonly Layer[]
  outcome: 'stopped' | 'escaped' | 'not-verified'
}

/** A check of what decides about changes, rather than of what holds the agent. */
export interface ProvenCheck {
  check: string
  words: string
  /** What stopped it: a rule, a state, a status. */
  stoppedBy: string
  outcome: 'stopped' | 'escaped' | 'not-verified'
  detail: string
}

export interface ProofReport {
  version: 1
  product: string
  time: string
  host: { kernel: string; architecture: string; node: string; name: string }
  profile: string
  layers: readonly Layer[]
  attacks: readonly ProvenAttack[]
  checks: readonly ProvenCheck[]
  notVerified: readonly { what: string; why: string }[]
  /** Nothing escaped. What was not verified does not count as proved: it is listed. */
  held: boolean
}

export interface Matrix {
  all: ActResults
  none: ActResults
  alone: Readonly<Record<Layer, ActResults>>
}

/** One row per attack. An attack that fails even without layers says nothing about them. */
export function provenAttacks(matrix: Matrix, layers: readonly Layer[]): ProvenAttack[] {
  return ACT_NAMES.map((attack) => {
    const [result, control] = [matrix.all[attack], matrix.none[attack]]
    const alone = Object.fromEntries(layers.map((layer) => [layer, matrix.alone[layer][attack]]))
    const stoppedBy = control === 'OK' ? layers.filter((layer) => matrix.alone[layer][attack] !== 'OK') : []
    const outcome = result === 'OK' ? 'escaped' : control === 'OK' ? 'stopped' : 'not-verified'
    return { attack, words: ACTS[attack], result, control, alone, stoppedBy, outcome }
  })
}

/** Everything that this machine cannot show, in words. */
export function notVerified(
  attacks: readonly ProvenAttack[],
  checks: readonly ProvenCheck[],
  features: readonly FeatureRow[],
): { what: string; why: string }[] {
  return [
    ...attacks
      .filter(({ outcome }) => outcome === 'not-verified')
      .map(({ words, control }) => ({
        what: words,
        why: `it fails without any layer too (${control}), so that nothing was shown`,
      })),
    ...checks
      .filter(({ outcome }) => outcome === 'not-verified')
      .map(({ words, detail }) => ({ what: words, why: detail })),
    ...features
      .filter(({ state }) => state !== 'have')
      .map(({ name, detail, lost }) => ({ what: `what ${name} holds`, why: `${detail}; lost: ${lost}` })),
  ]
}

export const held = (attacks: readonly ProvenAttack[], checks: readonly ProvenCheck[]): boolean =>
  [...attacks, ...checks].every(({ outcome }) => outcome !== 'escaped')
