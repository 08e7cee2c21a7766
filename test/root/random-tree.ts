import * as fs from 'node:fs'
import { join } from 'node:path'

/** Numbers that a seed decides. */
export class Dice {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  below(limit: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((this.#state / 2 ** 32) * limit)
  }

  oneOf<Item>(items: readonly Item[]): Item {
    const item = items[this.below(items.length)]
    if (item === undefined) throw new RangeError('There is nothing to choose from')
    return item
  }
}

/** Directories and files of all sizes, some of which no text can name; the folders that were made. */
export function growTree(root: string, dice: Dice, folders: number): string[] {
  const made = ['']
  for (let folder = 0; folder < folders; folder++) {
    const path = join(dice.oneOf(made), `d${folder}`)
    fs.mkdirSync(join(root, path))
    made.push(path)
    for (let file = dice.below(40); file > 0; file--)
      fs.writeFileSync(join(root, path, `f${file}`), `${path} ${file}`.repeat(dice.below(60)))
  }
  fs.writeFileSync(Buffer.concat([Buffer.from(join(root, 'd0/')), Buffer.from([0xff, 0xfe])]), 'no text')
  return made
}

type Act = (folder: string, name: string, dice: Dice) => void

const ACTS: readonly Act[] = [
  (folder, name, dice) => fs.writeFileSync(join(folder, name), 'changed'.repeat(dice.below(300))),
  (folder, name) => fs.writeFileSync(join(folder, `new-${name}`), name),
  (folder, name) => fs.rmSync(join(folder, name), { force: true }),
  (folder, name) => fs.chmodSync(join(folder, name), 0o600),
  (folder, name) => fs.linkSync(join(folder, name), join(folder, `link-${name}`)),
  (folder, name) => fs.symlinkSync(name, join(folder, `symlink-${name}`)),
  (folder, name) => fs.closeSync(fs.openSync(join(folder, name), 'r+')),
  (folder) => fs.chmodSync(folder, 0o711),
  (folder) => fs.rmSync(folder, { recursive: true }),
  (folder) => {
    fs.rmSync(folder, { recursive: true })
    fs.mkdirSync(folder)
    fs.writeFileSync(join(folder, 'f1'), 'instead')
  },
  (folder) => {
    fs.rmSync(folder, { recursive: true })
    fs.writeFileSync(folder, 'a file where a directory was')
  },
]
/** What takes a whole directory away is rarer than the rest. */
const GENTLE = 8

/** What an agent may do in such a tree; what its own deeds made impossible is left out. */
export function workIn(root: string, dice: Dice, folders: readonly string[], acts: number): void {
  for (let act = 0; act < acts; act++) {
    const folder = dice.oneOf(folders)
    const kinds = act % 25 === 0 && folder !== '' ? ACTS : ACTS.slice(0, GENTLE)
    try {
      dice.oneOf(kinds)(join(root, folder), `f${dice.below(40)}`, dice)
    } catch (error) {
      if (!['ENOENT', 'EEXIST', 'ENOTDIR'].includes((error as { code?: string }).code ?? '')) throw error
    }
  }
}
