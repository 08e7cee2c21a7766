import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { COMMON_OPTIONS, type Verb } from '../ctl/verb.ts'
import { VERBS } from '../ctl/verbs.ts'
import { ERRORS } from '../daemon/contract/errors.ts'
import { configSchema, parseConfig } from '../daemon/lib/config-schema.ts'
import { parseProfile, profileSchema } from '../daemon/policy/profile.ts'
import { ProfileStore } from '../daemon/policy/profiles.ts'
import { PROFILE_EXAMPLE } from '../tools/man/puzzle-profile.ts'
import { CONFIG_EXAMPLE } from '../tools/man/puzzled-yaml.ts'
import { fieldsOf } from '../tools/schema-fields.ts'
import { needs, program } from './tier/needs.ts'

const folder = fileURLToPath(new URL('../docs/man/', import.meta.url))
const PAGES = ['puzzle-profile.5', 'puzzlectl.1', 'puzzled.8', 'puzzled.yaml.5']

/** What a person reads, on lines so long that nothing is broken. */
function read(page: string): string {
  const shown = execFileSync('man', ['-l', folder + page], {
    encoding: 'utf8',
    env: { ...process.env, LC_ALL: 'C.UTF-8', MANWIDTH: '2000', MAN_KEEP_FORMATTING: '' },
  })
  return shown.replace(/.\x08/g, '').replace(/\s+/g, ' ')
}

/** What man(1) complains about in a page. */
function complaints(file: string): string {
  const env = { ...process.env, LC_ALL: 'C.UTF-8', MANWIDTH: '80' }
  const done = spawnSync('man', ['--warnings', '-l', file], { encoding: 'utf8', env })
  return `${done.status === 0 ? '' : `status ${done.status}\n`}${done.stderr}`
}

/** Verbs as they are typed: `run`, `profile list`. */
const typedVerbs = (verb: Verb, words: string): { words: string; verb: Verb }[] =>
  verb.verbs?.flatMap((inner) => typedVerbs(inner, `${words} ${inner.name}`)) ?? [{ words, verb }]

it('there are four pages', () => expect(readdirSync(folder).sort()).toEqual(PAGES))

describe.each(PAGES)('%s', (page) => {
  needs(program('man'))('is shown by man without a warning', () => expect(complaints(folder + page)).toBe(''))

  needs(program('mandoc'))('is well-formed for mandoc', () => {
    const done = spawnSync('mandoc', ['-T', 'lint', '-W', 'warning', folder + page], { encoding: 'utf8' })
    expect(done.stdout + done.stderr).toBe('')
  })
})

needs(program('man'))('a page that is broken would be noticed', () => {
  const place = mkdtempSync(join(tmpdir(), 'puzzled-man-'))
  const file = join(place, 'broken.1')
  writeFileSync(file, `${readFileSync(`${folder}puzzlectl.1`, 'utf8')}\n.NOSUCHMACRO\n`)
  const said = complaints(file)
  rmSync(place, { recursive: true })
  expect(said).toMatch(/NOSUCHMACRO/)
})

needs(program('man'))('puzzlectl(1) names every verb, option and exit status', () => {
  const text = read('puzzlectl.1')
  for (const { words, verb } of VERBS.flatMap((one) => typedVerbs(one, one.name))) {
    expect(text).toContain(` ${words} `)
    for (const [flags] of verb.options ?? []) expect(text).toContain(flags.replaceAll(/[<>]/g, ''))
  }
  for (const [flags] of COMMON_OPTIONS) expect(text).toContain(flags.replaceAll(/[<>]/g, ''))
  for (const { exit, summary } of Object.values(ERRORS)) {
    expect(text).toContain(` ${exit} `)
    expect(text).toContain(summary)
  }
})

needs(program('man'))('the pages of files name every key, and each has an explanation', () => {
  for (const [page, schema] of [
    ['puzzled.yaml.5', configSchema],
    ['puzzle-profile.5', profileSchema],
  ] as const) {
    const text = read(page)
    for (const { name, about } of fieldsOf(schema)) {
      if (name.endsWith('why')) continue
      expect(text, page).toContain(name)
      expect(about, `${name} needs a description`).not.toBe('')
    }
  }
})

describe('the examples', () => {
  it('of puzzled.yaml(5) is a configuration', () => {
    expect(parseConfig(CONFIG_EXAMPLE, 'puzzled.yaml').retention).toMatchObject({ age: 90 * 86_400 })
  })

  it('of puzzle-profile(5) is a profile that narrows the one it extends', async () => {
    const place = mkdtempSync(join(tmpdir(), 'puzzled-man-'))
    writeFileSync(join(place, 'backend.yaml'), PROFILE_EXAMPLE)
    expect(parseProfile(PROFILE_EXAMPLE, 'backend.yaml').source.name).toBe('backend')
    const { profile } = await new ProfileStore({ home: '/home/u' }).resolve(join(place, 'backend.yaml'))
    rmSync(place, { recursive: true })
    expect(profile.budgets.limits).toMatchObject({ wall: 3600, memory: 4 * 2 ** 30 })
  })
})
