import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { makePlace, type Place } from '../root/filesystems.ts'
import { needs, root } from '../tier/needs.ts'
import { DEVELOPER, type Workplace, workplace } from './cli.ts'

const puzzlectl = fileURLToPath(new URL('../../dist/puzzlectl.js', import.meta.url))
const test = needs(root)

let here: Workplace
let small: Place
beforeEach(() => {
  here = workplace()
  small = makePlace('tmpfs', 'size=16k')
})
afterEach(() => {
  small.remove()
  here.remove()
})

/** What a shell makes of `COMMAND REDIRECTION`: in a branch, or as it is. */
function redirected(how: 'branch' | 'outside', redirection: string, command: readonly string[]) {
  const branch = [process.execPath, puzzlectl, 'run', '--state-dir', here.state, '--']
  const argv = [...(how === 'branch' ? branch : []), ...command]
  const env = { ...process.env, SUDO_UID: String(DEVELOPER), SUDO_GID: String(DEVELOPER), SUDO_USER: 'dev' }
  const script = `"$@" ${redirection}`
  const { status, stderr } = spawnSync('sh', ['-c', script, 'sh', ...argv], { cwd: here.project, env })
  return { status, said: stderr.toString() }
}

describe('what an agent says, and its caller cannot take', () => {
  const place = (): string => join(small.path, 'out')

  test('fails the run, although the agent ended well: a disk that is full', () => {
    const filled = redirected('outside', `> ${place()}`, ['head', '-c', '100000', '/dev/zero'])
    expect(filled.status, 'control').toBe(1)
    expect(redirected('outside', `>> ${place()}`, ['/bin/echo', 'hello']).status, 'control').toBe(1)
    const { status, said } = redirected('branch', `>> ${place()}`, ['/bin/echo', 'hello'])
    expect(said).toContain('standard output did not take all that was written to it: ENOSPC')
    expect(status).toBe(73)
  })

  test('fails the run: a descriptor that is not open for writing, or for reading', () => {
    expect(redirected('outside', '1< /etc/passwd', ['/bin/echo', 'hello']).status, 'control').toBe(1)
    const output = redirected('branch', '1< /etc/passwd', ['/bin/echo', 'hello'])
    expect(output.said).toContain('standard output did not take all that was written to it: EBADF')
    expect(output.status).toBe(71)
    expect(redirected('outside', `0> ${place()}`, ['cat']).status, 'control').toBe(1)
    const input = redirected('branch', `0> ${place()}`, ['cat'])
    expect(input.said).toContain('standard input could not be read to its end: EBADF')
    expect(input.status).toBe(71)
  })

  test('is no failure where the reader has seen enough, and none of the status that the agent has itself', () => {
    const enough = redirected('branch', '| head -n 1 > /dev/null', ['seq', '100000'])
    expect(enough).toMatchObject({ status: 0, said: expect.not.stringContaining('warning') })
    const own = redirected('branch', '1< /etc/passwd', ['sh', '-c', '/bin/echo hello; exit 3'])
    expect(own).toMatchObject({ status: 3, said: expect.stringContaining('EBADF') })
  })
})
