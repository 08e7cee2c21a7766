import { spawn } from 'node:child_process'
import { chmod, chown, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Engine, QueuedView, QueueEdit } from '../../../daemon/contract/engine.ts'
import { PuzzledError } from '../../../daemon/lib/errors.ts'
import { jsonText } from '../../json.ts'
import { type PersonRights, personRights } from '../../person.ts'
import { bannerText } from '../../render/banner.ts'
import { editOf, formText, headerOf, isObeyed } from '../../render/request-form.ts'
import { visibleLine } from '../../render/visible.ts'
import { listOption, type OptionValues, textOption, type VerbRun } from '../../verb.ts'
import { findRequest } from './find.ts'

/** Larger ones are files that a person has, not texts that they type. */
const EDITED_BYTES = 1 << 20

export const run: VerbRun = async (context, [id = '', request = ''], options) => {
  const engine = await context.engine()
  const view = await findRequest(engine, id, request)
  const edit = (await fromOptions(options)) ?? (await inEditor(engine, id, view))
  if (edit === null) {
    await context.printError('Nothing was changed.\n')
    return 0
  }
  const outcome = await engine.queueEdit(id, request, edit, textOption(options, 'message') ?? '')
  if (context.json) await context.print(jsonText(outcome))
  else {
    await context.print(`Request ${visibleLine(request)} is changed.\n`)
    if (outcome.state === 'held') await context.print(bannerText(outcome, context.paint))
  }
  return 0
}

/** Null when no option says what to change. */
async function fromOptions(options: OptionValues): Promise<QueueEdit | null> {
  const method = textOption(options, 'method')
  const url = textOption(options, 'url')
  const file = textOption(options, 'body')
  const pairs = listOption(options, 'header').map(headerOf)
  const headers = [...new Set(pairs.map(([name]) => name))].map((name) => ({
    name,
    // As in curl: a name without a value takes the header away.
    values: pairs.filter(([key, value]) => key === name && value !== '').map(([, value]) => value),
  }))
  const edit: QueueEdit = {
    ...(method === null ? {} : { method }),
    ...(url === null ? {} : { url }),
    ...(headers.length === 0 ? {} : { headers }),
    ...(file === null ? {} : { body: await bodyFrom(file) }),
  }
  return Object.keys(edit).length === 0 ? null : edit
}

async function bodyFrom(file: string): Promise<Buffer> {
  if (file !== '-')
    return readFile(file).catch((cause: unknown) => {
      throw new PuzzledError('usage', `Cannot read "${file}"`, { cause })
    })
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

async function inEditor(engine: Engine, branch: string, view: QueuedView): Promise<QueueEdit | null> {
  const { bytes, size } = await engine.queueBody(branch, view.id, EDITED_BYTES)
  const body = size > bytes.length ? null : editableText(Buffer.from(bytes))
  const form = formText(view, branch, body)
  if (isObeyed(form))
    throw new PuzzledError('usage', 'The head of this request holds words that an editor would obey', {
      hint: 'Change it by options: --url, --method, --header "Name: value", --body FILE.',
    })
  const directory = await mkdtemp(join(tmpdir(), 'puzzlectl-'))
  const file = join(directory, `${view.id.replace(/[^\w-]/g, '')}.http`)
  try {
    const person = personRights()
    await writeFile(file, form, { mode: 0o600, flag: 'wx' })
    // Only the file is theirs: in a directory of theirs another one could be put in its place, for root to read.
    if (person.uid !== undefined && person.gid !== undefined) {
      await chmod(directory, 0o711)
      await chown(file, person.uid, person.gid)
    }
    await runEditor(file, person)
    return editOf(await readFile(file, 'utf8'), view, body)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** Null where an editor would not give back the same bytes, or could be told something by them. */
function editableText(body: Buffer): string | null {
  const text = body.toString('utf8')
  return Buffer.from(text).equals(body) && !isObeyed(text) && !/[\x00-\x08\x0b-\x1f\x7f-\x9f]/.test(text)
    ? text
    : null
}

function runEditor(file: string, person: PersonRights): Promise<void> {
  const editor = person.env.VISUAL || person.env.EDITOR || 'vi'
  return new Promise((done, failed) => {
    // $EDITOR may hold arguments; the shell splits it and nothing else.
    const child = spawn('/bin/sh', ['-c', `${editor} "$1"`, 'sh', file], { ...person, stdio: 'inherit' })
    child.once('error', failed)
    child.once('exit', (code) => {
      if (code === 0) done()
      else
        failed(
          new PuzzledError('usage', `The editor "${editor}" ended with status ${code ?? 'of a signal'}`, {
            hint: 'Nothing was changed. Set EDITOR, or use --body FILE and --header "Name: value".',
          }),
        )
    })
  })
}
