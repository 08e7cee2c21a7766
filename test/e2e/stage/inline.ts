// pure
import type { Verb } from '../../../ctl/verb.ts'

/** A command that stands in the prose of a document. */
export interface Inline {
  document: string
  text: string
}

/** Code spans of the prose; the blocks are read elsewhere. A span may go on in the next line. */
export const spansOf = (document: string, text: string): Inline[] =>
  [...text.replace(/^```.*?^```/gms, '').matchAll(/`([^`]+)`/g)].map(([, span = '']) => ({
    document,
    text: span.replace(/\s+/g, ' ').trim(),
  }))

/** The same for a manual page, whose code is bold; macros set what is generated from the table of verbs. */
export const boldOf = (document: string, roff: string): Inline[] =>
  [...roff.matchAll(/\\fB(.+?)\\fR/g)].map(([, bold = '']) => ({
    document,
    text: bold.replaceAll('\\-', '-').replaceAll('\\e', '\\'),
  }))

const OURS = /^(sudo |npx )*(puzzlectl|puzzled)(?= |$)/

/** A command line as a shell would split it, without whoever starts it and without `…` for "and so on". */
function wordsOf(line: string): string[] {
  const bare = line.replace(/^(sudo |npx )*/, '').replace(/[[\]]/g, '')
  return [...bare.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)]
    .map(([, single, double, plain]) => single ?? double ?? plain ?? '')
    .filter((word) => word !== '…' && word !== '...')
}

/** The words behind `puzzlectl` of each command of a line of a block; those of other programs are not ours to judge. */
export const argvsOf = (line: string): string[][] =>
  line
    .replace(/\s#.*$/, '')
    .split(/&&|\||;/)
    .map((one) => wordsOf(one.trim()))
    .flatMap(([first, ...argv]) => (first === 'puzzlectl' ? [argv] : []))

/** Where words stand for several verbs, as in `freeze|thaw`: each of them. */
function* alternatives(argv: readonly string[]): Generator<readonly string[]> {
  const at = argv.findIndex((word) => /^[a-z]+(\|[a-z]+)+$/.test(word))
  const behind = argv.findIndex((word) => /^[-<]/.test(word))
  if (at < 0 || (behind >= 0 && behind < at)) yield argv
  else for (const word of (argv[at] ?? '').split('|')) yield argv.with(at, word)
}

/** The words end where a verb with arguments of its own would begin to take them: the verb is spoken of, not typed. */
export function isVerb(argv: readonly string[], verbs: readonly Verb[]): boolean {
  const [first, ...rest] = argv
  const verb = verbs.find(({ name }) => name === first)
  return verb !== undefined && (rest.length === 0 || isVerb(rest, verb.verbs ?? []))
}

/**
 * What a span says to `puzzlectl`: a whole command line, or one without the name of the program (`audit verify --head
 * H`), or nothing of ours. A single word is a word, though a verb may be called so.
 */
export function saidIn({ text }: Inline, verbs: readonly Verb[]): (readonly string[])[] {
  const ours = OURS.exec(text)?.[2]
  if (ours === 'puzzlectl') return [...alternatives(wordsOf(text).slice(1))]
  const words = wordsOf(text)
  const named = verbs.find(({ name }) => name === words[0])
  const goesOn = words.slice(1).some((word) => word.startsWith('-') || isVerb([word], named?.verbs ?? []))
  return ours === undefined && named !== undefined && goesOn ? [words] : []
}

/** The options of a span that is nothing but these and their values, as `--then hold`. */
export const optionsIn = ({ text }: Inline): string[] =>
  text.startsWith('-') ? [...text.matchAll(/(?<!\S)--?[a-z][a-z-]*/gi)].map(([option]) => option) : []
