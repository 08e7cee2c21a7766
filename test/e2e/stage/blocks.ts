// pure

/** One command of a document, and what the document says that it shows and ends with. */
export interface Step {
  line: number
  who: string
  command: string
  status: number
  /** Absent where the document shows no output. */
  output?: string
}

export interface Block {
  document: string
  line: number
  language: string
  body: string
  /** From `<!-- situation: NAME -->` in front of it: what must have happened before somebody types this. */
  situation?: string
  /** From `<!-- shown by: FILE -->`: another test writes and checks it. */
  shownBy?: string
  steps: readonly Step[]
}

const FENCE = /^```(\w*)\s*$/

/** Every fenced block of a document, with its commands when it is one of a shell. */
export function blocksOf(document: string, text: string): Block[] {
  const lines = text.split('\n')
  const blocks: Block[] = []
  let notes: Record<string, string> = {}
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? ''
    const note = /^<!-- (situation|shown by): (\S+) -->$/.exec(line)
    if (note !== null) notes = { ...notes, [note[1] ?? '']: note[2] ?? '' }
    const language = FENCE.exec(line)?.[1]
    if (language === undefined) continue
    const end = lines.findIndex((each, index) => index > at && /^```\s*$/.test(each))
    if (end < 0) throw new Error(`${document}:${at + 1}: a block without an end`)
    const body = lines.slice(at + 1, end)
    blocks.push({
      document,
      line: at + 1,
      language,
      body: body.join('\n'),
      ...(notes.situation === undefined ? {} : { situation: notes.situation }),
      ...(notes['shown by'] === undefined ? {} : { shownBy: notes['shown by'] }),
      steps: stepsOf(language, body, at + 2),
    })
    notes = {}
    at = end
  }
  return blocks
}

function stepsOf(language: string, body: readonly string[], first: number): Step[] {
  if (language === 'sh') return joined(body, first).map(({ line, text }) => stepOf(line, 'alice', text))
  return language === 'console' ? transcript(body, first) : []
}

/** Lines that end in a backslash go on; comments and empty lines are for the reader. */
function joined(body: readonly string[], first: number): { line: number; text: string }[] {
  const found: { line: number; text: string }[] = []
  let open: { line: number; text: string } | undefined
  for (const [index, text] of body.entries()) {
    open = open === undefined ? { line: first + index, text } : { ...open, text: `${open.text}\n${text}` }
    if (text.endsWith('\\')) continue
    if (!/^\s*(#.*)?$/.test(open.text)) found.push(open)
    open = undefined
  }
  return found
}

/** `alice$ command`, or `$ command`, and below it what the terminal shows. */
function transcript(body: readonly string[], first: number): Step[] {
  const steps: (Step & { output: string })[] = []
  for (const [index, text] of body.entries()) {
    const [, who, command] = /^(\w*)\$ (.*)$/.exec(text) ?? []
    const last = steps.at(-1)
    if (command !== undefined)
      steps.push({ ...stepOf(first + index, who === '' ? 'alice' : (who ?? ''), command), output: '' })
    else if (last !== undefined) last.output += `${text}\n`
  }
  return steps
}

/** A command ends with 0 unless its line says `# exit status N`. */
const stepOf = (line: number, who: string, command: string): Step => ({
  line,
  who,
  command,
  status: Number(/# exit status (\d+)/.exec(command)?.[1] ?? 0),
})
