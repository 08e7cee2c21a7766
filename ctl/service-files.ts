import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { packageRoot } from '../daemon/lib/assets.ts'
import { PuzzledError } from '../daemon/lib/errors.ts'
import { UndoStack } from '../daemon/lib/undo.ts'

/** One file that makes the daemon a service of this machine. */
export interface ServiceFile {
  readonly target: string
  readonly content: string
}

interface Places {
  admin: string
  name?: string
}

/**
 * The files of systemd/ as `puzzlectl daemon install` puts them: where an administrator's files go, and with the
 * commands replaced by this installation's. `root` is a prefix for tests and images.
 */
export function serviceFiles(root = ''): readonly ServiceFile[] {
  const folder = join(packageRoot(), 'systemd')
  const list = JSON.parse(readFileSync(join(folder, 'install.json'), 'utf8')) as Record<string, Places>
  return Object.entries(list).map(([source, { admin, name }]) => ({
    target: join('/', root, admin, name ?? source),
    content: withCommands(readFileSync(join(folder, source), 'utf8')),
  }))
}

/** `/usr/bin/puzzled` is where a package puts it; here it is this Node and this file. */
function withCommands(text: string): string {
  const command = (name: string): string => `${process.execPath} ${join(packageRoot(), 'dist', name)}.js`
  return text.replace(
    /^(ExecStart=)\/usr\/bin\/(puzzled|puzzlectl)\b/gm,
    (_, key, name) => key + command(name),
  )
}

/**
 * Whoever can write the code of a root service is root. So every folder on the way to it must belong to root and be
 * writable by nobody else; a checkout in a home directory is refused.
 */
export function refuseWritableCode(path = packageRoot()): void {
  for (const file of [process.execPath, path]) {
    for (let part = file; ; part = dirname(part)) {
      const { uid, mode } = statSync(part)
      const others = (mode & 0o022) !== 0 && (mode & 0o1000) === 0
      if (uid !== 0 || others)
        throw new PuzzledError(
          'usage',
          `Cannot run ${file} as a service: others than root can write "${part}"`,
          {
            hint: 'npm install -g puzzled, then puzzlectl daemon install',
            data: { path: part, uid, mode: mode & 0o7777 },
          },
        )
      if (part === '/') break
    }
  }
}

/** Writes all files or none. Answers those that are new or changed. */
export async function writeServiceFiles(files: readonly ServiceFile[]): Promise<readonly string[]> {
  const undo = new UndoStack()
  const changed = files.filter(({ target, content }) => readIfThere(target) !== content)
  try {
    for (const { target, content } of changed) {
      const before = readIfThere(target)
      mkdirSync(dirname(target), { recursive: true })
      undo.push(target, () =>
        before === undefined ? rmSync(target, { force: true }) : writeFileSync(target, before),
      )
      writeFileSync(`${target}.new`, content, { mode: 0o644 })
      renameSync(`${target}.new`, target)
    }
    undo.keep()
  } finally {
    await undo.unwind()
  }
  return changed.map(({ target }) => target)
}

/** Removes the files that are there; answers which. */
export function removeServiceFiles(files: readonly ServiceFile[]): readonly string[] {
  const present = files.map(({ target }) => target).filter((target) => existsSync(target))
  for (const target of present) rmSync(target)
  return present
}

const readIfThere = (path: string): string | undefined =>
  existsSync(path) ? readFileSync(path, 'utf8') : undefined
