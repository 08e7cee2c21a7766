// pure

/**
 * Where the names of a changeset stand, so that a rule's cost depends on what it asks for and not on the number of
 * changes. All texts are folded (see `fold.ts`).
 */
export interface ChangeIndex {
  /** Must equal the number of changes: a policy must not judge by an index of something else. */
  count: number
  /** Base name → [change, directory number]. */
  names: Record<string, [change: number, directory: number][]>
  /** Part behind the last dot → changes. */
  extensions: Record<string, number[]>
  /** Every component of a directory's path → directory numbers. */
  segments: Record<string, number[]>
  directories: { path: string; changes: number[] }[]
  /** Changes of which something is true. */
  flags: Record<string, number[]>
  /** Two names of the final tree that some file system takes for one: [change, earlier change]. */
  collisions: [change: number, other: number][]
}

/** A changeset's links may give a path more names than anybody could judge. */
const MAX_ALIASES = 8

const record = <Value>(): Record<string, Value> => Object.create(null) as Record<string, Value>

function push<Value>(lists: Record<string, Value[]>, key: string, value: Value): void {
  const list = lists[key]
  if (list === undefined) lists[key] = [value]
  else list.push(value)
}

export class ChangeIndexBuilder {
  readonly #names = record<[number, number][]>()
  readonly #extensions = record<number[]>()
  readonly #segments = record<number[]>()
  readonly #directories: { path: string; changes: number[] }[] = []
  readonly #numbers = new Map<string, number>()
  readonly #flags = record<number[]>()
  readonly #collisions: [number, number][] = []
  readonly #final = new Map<string, number>()
  readonly #aliases: ReadonlyMap<string, readonly string[]>
  #count = 0

  /** `aliases`: folded directory → folded links of this changeset that lead there. */
  constructor(aliases: ReadonlyMap<string, readonly string[]>) {
    this.#aliases = aliases
  }

  flag(name: string, change: number): void {
    push(this.#flags, name, change)
  }

  /** Enters the change under every name that it has in the final tree. */
  add(change: number, folded: string, options: { exists: boolean; link: boolean }): void {
    this.#count++
    this.#enter(change, folded, options.link)
    if (this.#aliases.size > 0 && options.exists) this.#enterAliases(change, folded, options.link)
    if (!options.exists) return
    const other = this.#final.get(folded)
    if (other === undefined) this.#final.set(folded, change)
    else this.#collisions.push([change, other])
  }

  finish(): ChangeIndex {
    return {
      count: this.#count,
      names: this.#names,
      extensions: this.#extensions,
      segments: this.#segments,
      directories: this.#directories,
      flags: this.#flags,
      collisions: this.#collisions,
    }
  }

  #enter(change: number, folded: string, link: boolean): void {
    const slash = folded.lastIndexOf('/')
    const name = folded.slice(slash + 1)
    const directory = this.#directory(folded.slice(0, slash))
    this.#directories[directory]?.changes.push(change)
    push(this.#names, name, [change, directory])
    const dot = name.lastIndexOf('.')
    if (dot >= 0) push(this.#extensions, name.slice(dot + 1), change)
    // A link in the place of a directory is everything that could be below it.
    if (link) this.#directories[this.#directory(folded)]?.changes.push(change)
  }

  #enterAliases(change: number, folded: string, link: boolean): void {
    const seen = new Set([folded])
    for (const path of seen)
      for (let cut = path.length; cut > 0; cut = path.lastIndexOf('/', cut - 1))
        for (const from of this.#aliases.get(path.slice(0, cut)) ?? []) {
          if (seen.size > MAX_ALIASES) {
            this.flag('manyNames', change)
            return
          }
          const name = from + path.slice(cut)
          if (seen.has(name)) continue
          seen.add(name)
          this.#enter(change, name, link)
        }
  }

  #directory(path: string): number {
    const known = this.#numbers.get(path)
    if (known !== undefined) return known
    const number = this.#directories.length
    this.#numbers.set(path, number)
    this.#directories.push({ path, changes: [] })
    for (const segment of new Set(path.split('/'))) if (segment !== '') push(this.#segments, segment, number)
    return number
  }
}
