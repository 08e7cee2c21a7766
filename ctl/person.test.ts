import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { needs, root } from '../test/tier/needs.ts'
import { personRights } from './person.ts'

const SUDO = { PATH: process.env.PATH, PAGER: 'anything', SUDO_UID: '1', SUDO_GID: '1', HOME: '/root' }

describe('pagers and editors', () => {
  needs(root)('run as who typed sudo, without any group of root', () => {
    const script = 'id -u; id -g; id -G; echo "$HOME"'
    const asPerson = spawnSync('sh', ['-c', script], { ...personRights(SUDO, 0), encoding: 'utf8' })
    expect(asPerson.stdout).toBe('1\n1\n1\n/usr/sbin\n')
    // Control: without it they would be root's.
    const asRoot = spawnSync('sh', ['-c', script], { env: SUDO, encoding: 'utf8' })
    expect(asRoot.stdout.split('\n')[0]).toBe('0')
  })

  it('are those of root, and of everybody else, where nobody typed sudo', () => {
    for (const env of [
      {},
      { SUDO_UID: '0', SUDO_GID: '0' },
      { SUDO_UID: 'x', SUDO_GID: '1' },
      { SUDO_GID: '1' },
    ])
      expect(personRights(env, 0)).toEqual({ env })
    expect(personRights(SUDO, 1000)).toEqual({ env: SUDO })
  })

  it('have no group of root where sudo did not say which', () => {
    expect(personRights({ SUDO_UID: '1' }, 0).gid).toBe(65_534)
    expect(personRights({ SUDO_UID: '1', SUDO_GID: '0' }, 0).gid).toBe(0)
  })

  it('have a home also where passwd knows nobody of that number', () =>
    expect(personRights({ ...SUDO, SUDO_UID: '4000000001' }, 0).env.HOME).toBe('/'))
})
