/** A person at a terminal, asked for single keys and for lines. */
export class Keyboard {
  readonly #waiting: string[] = []
  #wake: (() => void) | undefined
  #ended = false

  constructor() {
    process.stdin.setEncoding('utf8')
    process.stdin.setRawMode(true)
    process.stdin.on('data', this.#take)
    process.stdin.on('end', this.#end)
  }

  /** One character as it was typed; null when the terminal is gone. Ctrl-C and Ctrl-D are `q`. */
  async key(): Promise<string | null> {
    while (this.#waiting.length === 0 && !this.#ended)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    const key = this.#waiting.shift() ?? null
    return key === '\u0003' || key === '\u0004' ? 'q' : key
  }

  /** What is typed up to Enter, shown as it is typed. */
  async line(show: (text: string) => Promise<void>): Promise<string> {
    let line = ''
    for (let key = await this.key(); key !== null && key !== '\r' && key !== '\n'; key = await this.key()) {
      if (key === '\u007f' || key === '\b') {
        if (line.length > 0) await show('\b \b')
        line = [...line].slice(0, -1).join('')
      } else if (key >= ' ') {
        line += key
        await show(key)
      }
    }
    await show('\n')
    return line
  }

  close(): void {
    process.stdin.off('data', this.#take)
    process.stdin.off('end', this.#end)
    process.stdin.setRawMode(false)
    process.stdin.pause()
  }

  readonly #take = (text: string): void => {
    // Cursor keys and the like are one sequence each and no answer to anything here.
    if (!text.startsWith('\u001b')) this.#waiting.push(...text)
    this.#wake?.()
  }

  readonly #end = (): void => {
    this.#ended = true
    this.#wake?.()
  }
}
