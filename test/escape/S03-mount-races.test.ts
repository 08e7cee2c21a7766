import { type ChildProcess, spawn } from 'node:child_process'
import { chownSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect } from 'vitest'
import { PuzzledError } from '../../daemon/lib/errors.ts'
import { run } from '../root/branch.fixture.ts'
import { roundsOf } from '../threats/counts.ts'
import { needs, program, root } from '../tier/needs.ts'
import { branchFor, commandIn, launcher } from './harness.ts'

const check = needs(root, program('python3'))
const { rounds: LAUNCHES, timeout } = roundsOf('PUZZLED_ESCAPE_LAUNCHES')

/** Exchanges two names as fast as it can, for as long as it lives. */
const SWAP = `
import ctypes, sys
libc = ctypes.CDLL(None)
a, b = (name.encode() for name in sys.argv[1:3])
print("ready", flush=True)
while True:
    libc.syscall(${process.arch === 'arm64' ? 276 : 316}, -100, a, -100, b, 2)
`

async function swapping<T>(a: string, b: string, act: () => Promise<T>): Promise<T> {
  const child: ChildProcess = spawn('python3', ['-c', SWAP, a, b], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = new Promise((resolve) => child.once('close', resolve))
  await new Promise((resolve) => child.stdout?.once('data', resolve))
  try {
    return await act()
  } finally {
    child.kill('SIGKILL')
    await ended
  }
}

describe('S3 races on the places that are mounted', () => {
  check('a base whose own dev, proc and etc are links elsewhere is a base like others', async () => {
    const branch = branchFor()
    for (const name of ['dev', 'proc', 'etc', 'sys']) symlinkSync('/etc', join(branch.base, name))
    const ran = await commandIn(branch, [
      'sh',
      '-c',
      'readlink dev proc etc; echo x >made; cat /proc/self/comm; test -c /dev/null && echo device',
    ])
    expect(ran.output).toBe('/etc\n/etc\n/etc\ncat\ndevice\n')
  })

  check(
    `a base that is exchanged for a link to /etc all the time is right or refused (${LAUNCHES} launches)`,
    { timeout },
    async () => {
      const branch = branchFor()
      const trap = join(dirname(branch.base), 'trap')
      writeFileSync(join(branch.base, 'mark'), 'base\n')
      symlinkSync('/etc', trap)
      const seen = { right: 0, refused: 0, wrong: 0 }
      await swapping(branch.base, trap, async () => {
        for (let launch = 0; launch < LAUNCHES; launch++) {
          try {
            const ran = await run(launcher, branch, [
              'sh',
              '-c',
              `cat ${branch.base}/mark 2>/dev/null; ls ${branch.base}`,
            ])
            if (ran.output.startsWith('base\n') && !ran.output.includes('passwd')) seen.right++
            else seen.wrong++
          } catch (error) {
            if (!(error instanceof PuzzledError)) throw error
            seen.refused++
          }
        }
      })
      expect(seen.wrong).toBe(0)
      expect(seen.right).toBeGreaterThan(0)
      expect(seen.refused).toBeGreaterThan(0)
    },
  )

  check(
    'a directory on the way to the base that is exchanged never shows another tree',
    { timeout },
    async () => {
      const branch = branchFor()
      const parent = dirname(branch.base)
      const [real, trap] = [join(parent, 'way'), join(parent, 'other')]
      mkdirSync(real)
      renameSync(branch.base, join(real, 'base'))
      writeFileSync(join(real, 'base', 'mark'), 'base\n')
      mkdirSync(join(trap, 'base'), { recursive: true })
      writeFileSync(join(trap, 'base', 'mark'), 'trap\n')
      symlinkSync(trap, join(parent, 'link'))
      chownSync(join(real, 'base'), 1000, 1000)
      const base = join(real, 'base')
      const moved = {
        ...branch,
        base,
        record: { ...branch.record, cwd: base, bases: [{ ...branch.record.bases[0], path: base } as never] },
        mounts: branch.mounts.map((mount) => ({ ...mount, base, lowers: [base] })),
      }
      const marks = new Set<string>()
      await swapping(real, join(parent, 'link'), async () => {
        for (let launch = 0; launch < LAUNCHES; launch++) {
          try {
            marks.add((await run(launcher, moved, ['cat', 'mark'])).output)
          } catch (error) {
            if (!(error instanceof PuzzledError)) throw error
            marks.add('refused')
          }
        }
      })
      expect([...marks].sort()).toEqual(['base\n', 'refused'])
    },
  )
})
