// pure
import { StateWalk } from './automaton-walk.ts'

/** Whether one character may stand here. */
type Test = (char: string) => boolean

export interface State {
  /** Null: nothing is read, all of `next` are entered. */
  test: Test | null
  next: number[]
}

const ANY: Test = () => true

/**
 * A pattern as a set of states that are all walked at once: the time is that of the text times the pattern, whatever
 * both are. A regular expression with a few stars takes years for a name of 255 equal letters, and whoever chooses
 * patterns or names could stop the whole process with one. Built from the end to the beginning: each part is told which
 * state follows it and answers the one that begins it.
 */
export class Automaton {
  readonly #states: State[] = []

  #add(test: Test | null, ...next: number[]): number {
    return this.#states.push({ test, next }) - 1
  }

  /** The end of the text. */
  end(): number {
    return this.#add(() => false)
  }

  one(test: Test, next: number): number {
    return this.#add(test, next)
  }

  text(text: string, next: number): number {
    let at = next
    for (const char of text.split('').reverse()) at = this.#add((read) => read === char, at)
    return at
  }

  any(of: readonly number[]): number {
    return this.#add(null, ...of)
  }

  /** As many as there are, none included. */
  many(test: Test, next: number): number {
    const loop = this.#add(null, next)
    this.#states[loop]?.next.push(this.#add(test, loop))
    return loop
  }

  /** Whole directories, none included: `(.*` and a slash`)?`. */
  directories(next: number): number {
    return this.any([next, this.many(ANY, this.text('/', next))])
  }

  /** The same of names that are not empty: `([^/]+/)*`. */
  names(next: number): number {
    const inName: Test = (char) => char !== '/'
    const loop = this.#add(null, next)
    const name = this.one(inName, this.many(inName, this.text('/', loop)))
    this.#states[loop]?.next.push(name)
    return loop
  }

  /** What is named, and everything below it. */
  below(end: number): number {
    return this.any([end, this.text('/', this.many(ANY, end))])
  }

  anything(next: number): number {
    return this.many(ANY, next)
  }

  /** Whether a text leads from one state to the other. Nothing may be added any more. */
  matcher(start: number, end: number): (text: string) => boolean {
    const walk = new StateWalk(this.#states, start, end)
    return (text) => walk.arrives(text)
  }
}
