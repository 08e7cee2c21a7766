import { homedir } from 'node:os'
import { dirname } from 'node:path'

/** First folders of absolute paths that documents and tests may name, because every reader knows them. */
const COMMON = new Set(
  `bin boot dev etc home lib lib64 media mnt nix opt proc root run sbin srv sys tmp usr var
   app base builds code data mem project repo src store target workspace x`.split(/\s+/),
)

/**
 * The absolute folders that exist because of where this checkout happens to lie: itself, its parents as far as they are
 * not places that every machine has, and the home of whoever runs the test.
 */
export function machinePlaces(checkout: string, home: string = homedir()): string[] {
  const places: string[] = []
  for (let dir = checkout.replace(/\/$/, ''); dir !== '/' && dir !== '.'; dir = dirname(dir)) {
    const depth = dir.split('/').length - 1
    if (depth > 1 || !COMMON.has(dir.slice(1))) places.push(dir)
    if (depth === 2 && COMMON.has(dir.split('/')[1] ?? '')) break
  }
  if (home !== '/root' && home.split('/').length > 2) places.push(home)
  return places
}

/** Lines of a text that name one of those folders as an absolute path. */
export function mentions(path: string, text: string, places: readonly string[]): string[] {
  return text
    .split('\n')
    .flatMap((line, index) =>
      places
        .filter((place) => new RegExp(`(^|[^\\w.$}/*)~-])${literally(place)}/`).test(line))
        .map((place) => `${path}:${index + 1} names ${place}`),
    )
}

const literally = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
