// pure
import type { State } from './automaton.ts'

/** The states that a beginning of a text can have led to, and where each character leads from there, as far as known. */
interface Place {
  states: readonly number[]
  isEnd: boolean
  next: Map<number, Place>
}

/**
 * How much is remembered, in states and steps: about a quarter of a megabyte. Patterns and names that lead to more places
 * than that make it forget and learn again.
 */
const ROOM = 4096

/**
 * Walks all states of an automaton at once. Where a character leads from a set of states is found once and remembered,
 * so a text costs one look per character; the first time, or where too much would have to be remembered, it costs
 * as many as there are states. That is the most that anybody's pattern and text can make of it.
 */
export class StateWalk {
  readonly #states: readonly State[]
  readonly #start: number
  readonly #end: number
  /** When each state was entered last. */
  readonly #seen: Uint32Array
  #now = 0
  readonly #places = new Map<string, Place>()
  #room = ROOM
  #first: Place | undefined

  constructor(states: readonly State[], start: number, end: number) {
    this.#states = states
    this.#start = start
    this.#end = end
    this.#seen = new Uint32Array(states.length)
  }

  arrives(text: string): boolean {
    let place = this.#first ?? this.#begin()
    for (let at = 0; at < text.length && place.states.length > 0; at++) {
      const unit = text.charCodeAt(at)
      place = place.next.get(unit) ?? this.#learn(place, unit)
    }
    return place.isEnd
  }

  #begin(): Place {
    this.#first = this.#placeOf([this.#start])
    return this.#first
  }

  #learn(from: Place, unit: number): Place {
    if (this.#room <= 0) this.#forget()
    const char = String.fromCharCode(unit)
    const reached: number[] = []
    for (const at of from.states) {
      const state = this.#states[at]
      if (state?.test?.(char) === true) reached.push(...state.next)
    }
    const place = this.#placeOf(reached)
    from.next.set(unit, place)
    this.#room--
    return place
  }

  #placeOf(reached: readonly number[]): Place {
    const states = this.#entered(reached)
    const key = states.join()
    const known = this.#places.get(key)
    if (known !== undefined) return known
    if (this.#room < states.length) this.#forget()
    const place = { states, isEnd: states.includes(this.#end), next: new Map<number, Place>() }
    this.#places.set(key, place)
    this.#room -= states.length + 1
    return place
  }

  #forget(): void {
    // Whoever is on the way still holds where they are, and nothing else does.
    for (const { next } of this.#places.values()) next.clear()
    this.#places.clear()
    this.#first = undefined
    this.#room = ROOM
  }

  /** Those that read a character, with all that is entered without one, in one order. */
  #entered(reached: readonly number[]): number[] {
    this.#now++
    const entered: number[] = []
    const open = [...reached]
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      const state = this.#states[at]
      if (state === undefined || this.#seen[at] === this.#now) continue
      this.#seen[at] = this.#now
      if (state.test === null) open.push(...state.next)
      else entered.push(at)
    }
    return entered.sort((a, b) => a - b)
  }
}
