// Where the last cut fell, read from the journal before anything recovers it (docs/journal.md has the steps).
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export function cutPhase(journal) {
  const names = existsSync(journal) ? readdirSync(journal) : []
  const open = names.find((name) => name.endsWith('.open'))
  if (open === undefined) return 'between commits'
  const log = `${open.slice(0, -'.open'.length)}.log`
  if (names.includes(log))
    return /"kind":"done"/.test(readFileSync(join(journal, log), 'utf8')) ? 'after DONE' : 'after INTENT'
  return names.includes(`${log}.new`) ? 'with the journal written, before INTENT' : 'while staging'
}
