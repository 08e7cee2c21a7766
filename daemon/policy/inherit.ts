// pure
import { PuzzledError } from '../lib/errors.ts'
import { applySource } from './apply.ts'
import { type DocumentPath, type Place, showPlace } from './document.ts'
import { NOTHING, type Origins, type ParsedProfile, type ResolvedProfile } from './profile.ts'
import { widenings } from './widening.ts'

/** A profile that extends nothing. */
export const resolveRoot = (parsed: ParsedProfile): ResolvedProfile => ({
  profile: applySource(NOTHING, parsed.source),
  origins: originsOf(parsed),
})

/** A profile laid over the one it extends. Widening is an error that names both lines. */
export function narrow(parent: ResolvedProfile, parsed: ParsedProfile): ResolvedProfile {
  const profile = applySource(parent.profile, parsed.source)
  const own = originsOf(parsed)
  const wider = widenings(parent.profile, profile).map(({ key, parentKey, found, allowed }) => {
    const here = placeOf(own, key, parsed.document.place([]))
    const there = placeOf(parent.origins, parentKey, parsed.document.place([]))
    return `${showPlace(here)}: ${section(key)}: found ${found}, but "${parent.profile.name}" (${showPlace(there)}) allows ${allowed}`
  })
  if (wider.length > 0)
    throw new PuzzledError(
      'profile-invalid',
      `Profile "${profile.name}" widens what it extends: ${wider[0]}${wider.length > 1 ? ` (and ${wider.length - 1} more)` : ''}`,
      { data: { problems: wider }, hint: 'A profile may only narrow; write one without "extends" for more.' },
    )
  return { profile, origins: new Map([...parent.origins, ...own]) }
}

const section = (key: string): string => key.split(':', 1)[0] ?? key

/** The line of a key, or of the nearest enclosing section that is written. */
function placeOf(origins: Origins, key: string, fallback: Place): Place {
  const steps = [key, section(key), section(key).split('.', 1)[0] ?? '', '']
  for (const step of steps) {
    const place = origins.get(step)
    if (place !== undefined) return place
  }
  return fallback
}

/** Key of every grant and limit → where this file says it. */
function originsOf({ source, document }: ParsedProfile): Map<string, Place> {
  const origins = new Map<string, Place>([['', document.place([])]])
  const mark = (key: string, path: DocumentPath): void => {
    origins.set(key, document.place(path))
  }
  for (const [key, value] of Object.entries(source)) {
    if (value === undefined) continue
    origins.set(key, document.keyPlace([], key))
    if (typeof value !== 'object' || Array.isArray(value)) continue
    for (const inner of Object.keys(value)) origins.set(`${key}.${inner}`, document.keyPlace([key], inner))
  }
  const paths = (
    key: string,
    at: DocumentPath,
    list: readonly { path: readonly string[] }[] | undefined,
  ): void =>
    list?.forEach((grant, index) => {
      for (const each of grant.path) mark(`${key}:${each}`, [...at, index])
    })
  paths('mounts', ['mounts'], source.mounts)
  const allow = source.exec?.allow
  if (Array.isArray(allow)) paths('exec.allow', ['exec', 'allow'], allow)
  paths('exec.deny', ['exec', 'deny'], source.exec?.deny)
  paths('landlock.read', ['landlock', 'read'], source.landlock?.read)
  paths('landlock.write', ['landlock', 'write'], source.landlock?.write)
  paths('gate.holdPaths', ['gate', 'holdPaths'], source.gate?.holdPaths)
  paths('gate.denyPaths', ['gate', 'denyPaths'], source.gate?.denyPaths)
  source.environment?.pass?.forEach((grant, index) => {
    for (const name of grant.names) mark(`environment.pass:${name}`, ['environment', 'pass', index])
  })
  source.environment?.set?.forEach(({ name }, index) => {
    mark(`environment.set:${name}`, ['environment', 'set', index])
  })
  markNetwork(source.network, mark)
  return origins
}

function markNetwork(
  network: ParsedProfile['source']['network'],
  mark: (key: string, path: DocumentPath) => void,
): void {
  network?.rules?.forEach(({ id }, index) => {
    mark(`network.rules:${id}`, ['network', 'rules', index])
  })
  network?.expose?.forEach(({ host, port }, index) => {
    mark(`network.expose:${host}:${port}`, ['network', 'expose', index])
  })
  network?.ports?.forEach(({ port }, index) => {
    mark(`network.ports:${port}`, ['network', 'ports', index])
  })
  network?.credentials?.forEach(({ placeholder }, index) => {
    mark(`network.credentials:${placeholder}`, ['network', 'credentials', index])
  })
}
