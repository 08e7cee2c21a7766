import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { emptyTrash } from '../../daemon/branch/trash.ts'
import { needs, root } from '../tier/needs.ts'

const it = needs(root)

it.each(['branch', 'branch/deep', 'branch/layers/deep'])(
  'what is mounted on %s in the trash is not removed with it, not even from the same filesystem',
  (at) => {
    const place = mkdtempSync(join(tmpdir(), 'removal-'))
    const [trash, home] = [join(place, 'trash'), join(place, 'home')]
    const below = join(trash, at)
    mkdirSync(below, { recursive: true })
    mkdirSync(join(home, 'folder'), { recursive: true })
    writeFileSync(join(home, 'letter'), 'dear')
    writeFileSync(join(home, 'folder/letter'), 'dear')
    execFileSync('mount', ['--bind', home, below])
    try {
      expect(() => emptyTrash(trash)).toThrow(/mounted on|EBUSY/)
      expect(readFileSync(join(home, 'letter'), 'utf8')).toBe('dear')
      expect(readFileSync(join(home, 'folder/letter'), 'utf8')).toBe('dear')
    } finally {
      // Wherever the removal had moved it to.
      const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
        .split('\n')
        .map((line) => line.split(' ')[4] ?? '')
      for (const mount of mounts.filter((path) => path.startsWith(place))) execFileSync('umount', [mount])
    }
    emptyTrash(trash)
    expect(readdirSync(trash)).toEqual([])
    rmSync(place, { recursive: true })
  },
)
