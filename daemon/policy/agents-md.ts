// pure
import { stringify } from 'yaml'
import { showText } from './fold.ts'
import { PROFILE_FORMAT } from './profile.ts'

/** One file of instructions, as it was found below the project. */
export interface InstructionFile {
  path: string
  text: string
}

export interface Draft {
  /** A profile file, for a person to read before it is used. */
  yaml: string
  /** What was taken from where. */
  taken: readonly string[]
}

interface Restriction {
  place: string
  words: string
  paths: readonly string[]
  kind: 'deny' | 'hold' | 'offline' | 'read-only' | 'no-delete'
}

/** Sentences that forbid. Only these are taken: whatever a file of instructions would allow is not asked for. */
const FORBIDS =
  /\b(?:never|do not|don['’]t|must not|mustn['’]t|may not|avoid|not allowed|forbidden|no (?:changes?|edits?|network)|off[- ]limits)\b/i
const ASKS =
  /\b(?:ask|confirm|approval|approve|permission|check with)\b[^.]*\b(?:before|first|changing|editing|modify)/i
const CHANGES = /\b(?:edit|modif|touch|chang|writ|commit|alter|updat|overwrit|creat|rename|move|delet|remov)/i
const NETWORK =
  /\b(?:network|internet|online|web requests?|http requests?|external (?:services?|apis?|calls?))\b/i
const DELETES = /\b(?:delete|remove|rm)\b/i
const READ_ONLY = /\bread[- ]only\b/i

/** Something that names a file or a directory: in back-quotes, with a slash or a dot, and no command. */
const PATH = /`([A-Za-z0-9_.@*][A-Za-z0-9_./@*-]{0,200})`/g
const looksLikePath = (text: string): boolean =>
  /[/.]/.test(text) && !text.includes('..') && !/^https?:/.test(text)

/**
 * A draft of a profile from `AGENTS.md` and its like. It can only tighten: the draft extends a profile, and every
 * entry takes something away. The words of the files end up in `why`, for the reader; nothing in them is obeyed.
 */
export function draftProfile(files: readonly InstructionFile[], name: string, parent: string): Draft {
  const found = files.flatMap(restrictions)
  const grants = (kind: 'deny' | 'hold') =>
    found
      .filter((each) => each.kind === kind)
      .flatMap(({ paths, place, words }) =>
        paths.map((path) => ({ path: globOf(path), why: reason(place, words) })),
      )
      .filter((grant, index, all) => all.findIndex(({ path }) => path === grant.path) === index)
      .slice(0, 100)
  const readOnly = found.find(({ kind }) => kind === 'read-only')
  const denyPaths = [
    ...(readOnly === undefined ? [] : [{ path: '/**', why: reason(readOnly.place, readOnly.words) }]),
    ...grants('deny'),
  ]
  const holdPaths = grants('hold')
  const gate = {
    ...(found.some(({ kind }) => kind === 'no-delete') ? { maxDeletions: 0 } : {}),
    ...(denyPaths.length === 0 ? {} : { denyPaths }),
    ...(holdPaths.length === 0 ? {} : { holdPaths }),
  }
  const profile = {
    format: PROFILE_FORMAT,
    name,
    description: `Draft from ${
      files
        .map(({ path }) => showText(path))
        .join(', ')
        .slice(0, 400) || 'no file'
    }; to be reviewed.`,
    extends: parent,
    ...(found.some(({ kind }) => kind === 'offline') ? { network: { mode: 'none', rules: [] } } : {}),
    ...(Object.keys(gate).length === 0 ? {} : { gate }),
  }
  return {
    yaml: `# A draft: read every line. It extends "${parent}" and can only take away from it.\n${stringify(profile, { lineWidth: 110, aliasDuplicateObjects: false })}`,
    taken: found.map(({ place, kind, words }) => `${place}: ${kind}: ${words}`),
  }
}

function restrictions({ path, text }: InstructionFile): Restriction[] {
  const found: Restriction[] = []
  let fenced = false
  text.split('\n').forEach((line, index) => {
    if (/^\s*(?:```|~~~)/.test(line)) fenced = !fenced
    if (fenced || line.length > 2_000) return
    const words = showText(line.replace(/^[\s>*#-]+/, '').trim()).slice(0, 240)
    const place = `${showText(path)}:${index + 1}`
    const paths = [...line.matchAll(PATH)].map(([, inner = '']) => inner).filter(looksLikePath)
    const add = (kind: Restriction['kind']): void => {
      found.push({ place, words, paths, kind })
    }
    const forbids = FORBIDS.test(line)
    if (forbids && CHANGES.test(line) && paths.length > 0) add('deny')
    else if (ASKS.test(line) && paths.length > 0) add('hold')
    if (forbids && NETWORK.test(line)) add('offline')
    if (forbids && DELETES.test(line) && paths.length === 0) add('no-delete')
    if (READ_ONLY.test(line) && paths.length > 0) add('deny')
    else if (READ_ONLY.test(line) && /\b(?:repository|project|codebase|tree)\b/i.test(line)) add('read-only')
  })
  return found
}

/** Wherever the project lies: the pattern says the end of the target. */
function globOf(path: string): string {
  const bare = path.replace(/^\.?\//, '').replace(/\/+(?:\*\*?)?$/, '')
  return `/**/${bare.replace(/\/{2,}/g, '/')}`
}

const reason = (place: string, words: string): string =>
  `${place} says: ${words}`.slice(0, 390).padEnd(8, '.')
