import { readFile, stat } from 'node:fs/promises'

/** A small file that seldom changes: it is read, and understood, again only when it is another one than before. */
export class SteadyFile<Meaning> {
  readonly #path: string
  readonly #understand: (text: string) => Meaning
  #known: { version: string; meaning: Meaning } | undefined

  constructor(path: string, understand: (text: string) => Meaning) {
    this.#path = path
    this.#understand = understand
  }

  /** Its errors are those of the file: one that cannot be read has no meaning left over from before. */
  async read(): Promise<Meaning> {
    // The version first: what is read may be newer than it, and then it is read again the next time.
    const { ino, size, mtimeMs, ctimeMs } = await stat(this.#path)
    const version = `${ino} ${size} ${mtimeMs} ${ctimeMs}`
    if (this.#known?.version === version) return this.#known.meaning
    const meaning = this.#understand(await readFile(this.#path, 'utf8'))
    this.#known = { version, meaning }
    return meaning
  }
}
