import { readdirSync } from 'node:fs'
import { basename } from 'node:path'
import { PROFILE_FORMAT, profileSchema } from '../../daemon/policy/profile.ts'
import { type Field, fieldsOf } from '../schema-fields.ts'
import { example, heading, item, page, prose, seeAlso, subheading } from './roff.ts'

const DESCRIPTION = `A profile says what an agent may see, do, reach and use up. It is YAML 1.2. What is not written is not granted. Every grant carries \`why\`: one
sentence for the person who reviews the profile. An unknown key is an error, and so is a value that is not of the documented form: the message names the file, the
line, what was found and what was expected.

A profile that extends another one can only narrow it. A line that would widen it is an error. \`puzzlectl profile show\` prints the
result, with the file and line that each grant comes from; \`puzzlectl profile diff\` prints what one profile grants and another does not.

Sizes are written as \`512MiB\` or \`2GB\`, durations as \`90s\`, \`30m\` or \`2h\`. Where one path, name or host is expected, a list of them is accepted.`

const shipped = readdirSync('policies/profiles')
  .map((file) => `\`${basename(file, '.yaml')}\``)
  .sort()
const PLACES = `\`/etc/puzzled/profiles/\` comes before the profiles that are shipped: ${shipped.slice(0, -1).join(', ')} and ${shipped.at(-1)}.
\`--profile\` takes a name or the path of a file.`

export const PROFILE_EXAMPLE = `format: ${PROFILE_FORMAT}
name: backend
description: The coding agent of the backend team, with an hour and without the network.
extends: offline
budgets:
  wall: 1h
  memory: 4GiB
gate:
  holdPaths:
    - path: /srv/backend/migrations/**
      why: Migrations are looked at by a person, always.`

/** Keys that say the same wherever they stand are explained once. */
const EVERYWHERE = new Set(['why'])

const chapterOf = (field: Field): string => field.name.replace(/[.[].*$/, '')

function chapters(fields: readonly Field[]): string[] {
  const names = [...new Set(fields.map(chapterOf))]
  return names.map((name) => {
    const own = fields.filter((field) => chapterOf(field) === name)
    const [head, ...keys] = own
    const shown = keys.filter((field) => !EVERYWHERE.has(field.name.split('.').at(-1) ?? ''))
    return `${subheading(name)}${prose(`${head?.about ?? ''} ${typeText(head, keys.length > 0)}`)}${shown.map((field) => item(`\`${field.name}\``, `${field.about} ${typeText(field, false)}`)).join('')}`
  })
}

/** Choices are worth printing; that a path is a string goes without saying. */
const typeText = (field: Field | undefined, isParent: boolean): string => {
  if (field === undefined || isParent) return ''
  const required = field.optional ? '' : ' Required.'
  const choices = /\|/.test(field.type) ? `One of ${field.type.replaceAll(' | ', ', ')}.` : ''
  return `${choices}${required}`.trim()
}

export const puzzleProfilePage = (): string =>
  page('puzzle-profile', 5, 'File Formats', [
    `${heading('Name')}puzzle\\-profile \\- what an agent may see, do, reach and use up\n`,
    `${heading('Synopsis')}.I /etc/puzzled/profiles/name.yaml\n`,
    `${heading('Description')}${prose(DESCRIPTION)}`,
    `${heading('Places')}${prose(PLACES)}`,
    heading('Keys'),
    ...chapters(fieldsOf(profileSchema)),
    `${heading('Checking')}${example('puzzlectl profile validate FILE\npuzzlectl profile show --why FILE\npuzzlectl explain --profile FILE -- COMMAND')}`,
    `${heading('Example')}${example(PROFILE_EXAMPLE)}`,
    seeAlso(['puzzlectl(1)', 'puzzled(8)', 'puzzled.yaml(5)']),
  ])
