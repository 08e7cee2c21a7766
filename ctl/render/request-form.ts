// pure
import type { QueuedView, QueueEdit } from '../../daemon/contract/engine.ts'
import { PuzzledError } from '../../daemon/lib/errors.ts'

/** A queued request as a text that a person changes in an editor; null stands for a body that is no text to edit. */
export function formText(view: QueuedView, branch: string, body: string | null): string {
  const notes = [
    `Request ${view.id} of branch ${branch}. Lines that begin with # are no part of it.`,
    'First the method and the URL, then headers, an empty line, and the body as it will be sent.',
    'A value that is not shown, and a credential, stay as they are unless the line is changed.',
    ...(body === null
      ? ['The body is no text, too long, or holds what editors obey: give another one with --body FILE.']
      : []),
  ]
  const headers = view.headers.map(([name, value]) => `${name}: ${oneLine(value)}\n`)
  const head = `${notes.map((line) => `# ${line}\n`).join('')}${view.method} ${oneLine(view.url)}\n`
  return `${head}${headers.join('')}\n${body ?? ''}`
}

/** Lines by which vim and emacs let a file set them up: no agent may write such a file for a person's editor. */
export const isObeyed = (text: string): boolean =>
  /(?:^|\s)(?:vi|vim|ex)(?:[<=>]?\d+)?:|-\*-|Local Variables:/im.test(text)

/** What the person changed; null when nothing. */
export function editOf(text: string, view: QueuedView, body: string | null): QueueEdit | null {
  const { head, rest } = parts(text)
  const [line = '', ...lines] = head
  const [, method = '', url = ''] = /^(\S+)\s+(\S+)\s*$/.exec(line) ?? []
  if (url === '') throw wrong(`"${line}" is no method and URL`)
  const headers = changedHeaders(view.headers, lines.map(headerOf))
  const edit: QueueEdit = {
    ...(method === view.method ? {} : { method }),
    ...(url === oneLine(view.url) ? {} : { url }),
    ...(headers.length === 0 ? {} : { headers }),
    ...bodyEdit(rest, body),
  }
  return Object.keys(edit).length === 0 ? null : edit
}

function parts(text: string): { head: string[]; rest: string } {
  const head: string[] = []
  let at = 0
  while (at < text.length) {
    const newline = text.indexOf('\n', at)
    const end = newline < 0 ? text.length : newline
    const line = text.slice(at, end).replace(/\r$/, '')
    at = end + 1
    if (line.startsWith('#')) continue
    if (line.trim() !== '') head.push(line)
    // Empty lines before the first line are an editor's doing.
    else if (head.length > 0) return { head, rest: text.slice(at) }
  }
  return { head, rest: '' }
}

export function headerOf(line: string): readonly [string, string] {
  const colon = line.indexOf(':')
  if (colon < 1) throw wrong(`"${line}" is no header: write "Name: value"`)
  return [line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()]
}

type Pairs = readonly (readonly [string, string])[]

function changedHeaders(before: Pairs, after: Pairs): NonNullable<QueueEdit['headers']> {
  const valuesOf = (pairs: Pairs, name: string): string[] =>
    pairs.filter(([key]) => key.toLowerCase() === name).map(([, value]) => oneLine(value))
  const names = new Set([...before, ...after].map(([name]) => name.toLowerCase()))
  const changed = [...names].map((name) => ({
    name,
    old: valuesOf(before, name),
    values: valuesOf(after, name),
  }))
  return changed
    .filter(({ old, values }) => old.join('\n') !== values.join('\n'))
    .map(({ name, old, values }) => {
      // Only a stand-in of the true value is known here; it must not become the value.
      if (values.some((value) => old.includes(value) && isStandIn(value)))
        throw wrong(
          `Write every value of "${name}" anew: one that is not shown cannot be kept beside a changed one`,
        )
      return { name, values }
    })
}

const isStandIn = (value: string): boolean => /^\(\d+ characters, not shown\)$|^credential /.test(value)

function bodyEdit(rest: string, body: string | null): Pick<QueueEdit, 'body'> {
  if (body === null) {
    if (rest.trim() === '') return {}
    throw wrong('The body of this request can only be replaced: --body FILE')
  }
  // Editors end a file with a newline; the request need not.
  const text = !body.endsWith('\n') && rest.endsWith('\n') ? rest.slice(0, -1) : rest
  return text === body ? {} : { body: Buffer.from(text) }
}

const oneLine = (text: string): string => text.replace(/[\r\n]+/g, ' ').trim()

const wrong = (message: string): PuzzledError =>
  new PuzzledError('usage', message, { hint: 'Nothing was changed.' })
