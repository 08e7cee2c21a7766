/** As much of PromQL as a dashboard of ours uses; what it cannot read is refused, not guessed. */

export interface Selector {
  readonly metric: string
  /** Labels that it matches or that a surrounding aggregation names. */
  readonly labels: readonly string[]
}

const AGGREGATIONS = new Set(['sum', 'max', 'min', 'avg', 'count', 'topk'])
const FUNCTIONS: Readonly<Record<string, readonly ('number' | 'instant' | 'range')[]>> = {
  rate: ['range'],
  increase: ['range'],
  histogram_quantile: ['number', 'instant'],
  clamp_min: ['instant', 'number'],
}

const TOKEN =
  /\s*(?:(\$__rate_interval|\d+(?:\.\d+)?[smhd])(?=\])|(\d+(?:\.\d+)?(?:e-?\d+)?)|([a-zA-Z_:][a-zA-Z0-9_:]*)|("(?:[^"\\]|\\.)*")|(=~|!~|!=|>=|<=|==|[-+*/()[\]{},=<>]))/y

type Kind = 'number' | 'instant' | 'range'

/** The selectors of an expression; throws when it is not one. */
export function parsePromql(text: string): Selector[] {
  const parser = new Parser(tokens(text))
  if (parser.expression() === 'range') throw new Error('the result is a range')
  parser.end()
  return parser.selectors
}

function tokens(text: string): string[] {
  const found: string[] = []
  const pattern = new RegExp(TOKEN)
  for (let at = 0; at < text.trimEnd().length; at = pattern.lastIndex) {
    pattern.lastIndex = at
    const match = pattern.exec(text)
    if (match === null) throw new Error(`cannot read "${text.slice(at)}"`)
    found.push(match.slice(1).find((part) => part !== undefined) ?? '')
  }
  return found
}

class Parser {
  readonly selectors: { metric: string; labels: string[] }[] = []
  readonly #tokens: string[]

  constructor(all: string[]) {
    this.#tokens = all
  }

  end(): void {
    if (this.#tokens.length > 0) throw new Error(`"${this.#tokens.join(' ')}" is left over`)
  }

  expression(): Kind {
    let kind = this.#term()
    while (/^[-+*/<>]$|^[<>=!]=$/.test(this.#tokens[0] ?? '')) {
      this.#tokens.shift()
      const right = this.#term()
      if (kind === 'range' || right === 'range') throw new Error('ranges cannot be computed with')
      kind = kind === 'number' && right === 'number' ? 'number' : 'instant'
    }
    return kind
  }

  #term(): Kind {
    const token = this.#tokens.shift() ?? ''
    if (token === '(') {
      const kind = this.expression()
      this.#take(')')
      return kind
    }
    if (/^\d/.test(token)) return 'number'
    if (AGGREGATIONS.has(token)) return this.#aggregation()
    const wanted = FUNCTIONS[token]
    if (wanted !== undefined) return this.#call(token, wanted)
    if (!/^[a-zA-Z_:]/.test(token)) throw new Error(`"${token}" begins no expression`)
    return this.#selector(token)
  }

  #aggregation(): Kind {
    const names = this.#tokens[0] === 'by' ? this.#names() : []
    this.#take('(')
    const before = this.selectors.length
    if (this.expression() !== 'instant') throw new Error('an aggregation needs an instant vector')
    this.#take(')')
    for (const selector of this.selectors.slice(before)) selector.labels.push(...names)
    return 'instant'
  }

  #names(): string[] {
    this.#take('by')
    this.#take('(')
    const names: string[] = []
    for (;;) {
      names.push(this.#tokens.shift() ?? '')
      const next = this.#tokens.shift()
      if (next === ')') return names
      if (next !== ',') throw new Error('a list of labels is malformed')
    }
  }

  #call(name: string, wanted: readonly Kind[]): Kind {
    this.#take('(')
    for (const [at, kind] of wanted.entries()) {
      if (at > 0) this.#take(',')
      const found = this.expression()
      if (found !== kind) throw new Error(`${name} needs ${kind} where ${found} is`)
    }
    this.#take(')')
    return 'instant'
  }

  #selector(metric: string): Kind {
    const selector = { metric, labels: [] as string[] }
    this.selectors.push(selector)
    if (this.#tokens[0] === '{') {
      this.#tokens.shift()
      for (;;) {
        selector.labels.push(this.#tokens.shift() ?? '')
        if (!/^(=|!=|=~|!~)$/.test(this.#tokens.shift() ?? '')) throw new Error('a matcher is malformed')
        if (!/^"/.test(this.#tokens.shift() ?? '')) throw new Error('a matcher needs a string')
        const next = this.#tokens.shift()
        if (next === '}') break
        if (next !== ',') throw new Error('matchers are malformed')
      }
    }
    if (this.#tokens[0] !== '[') return 'instant'
    this.#tokens.shift()
    if (!/^(\$__rate_interval|\d+(\.\d+)?[smhd])$/.test(this.#tokens.shift() ?? ''))
      throw new Error('a range needs a duration')
    this.#take(']')
    return 'range'
  }

  #take(token: string): void {
    const found = this.#tokens.shift()
    if (found !== token) throw new Error(`"${token}" expected, "${found ?? ''}" found`)
  }
}
