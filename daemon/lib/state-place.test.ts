import { describe, expect, it } from 'vitest'
import { defaultStateDirectory, unreadableState, unsuitableState } from './state-place.ts'

describe('the state directory', () => {
  it('is the system’s for root and the user’s for everybody else', () => {
    expect(defaultStateDirectory(0, { HOME: '/root', XDG_STATE_HOME: '/x' })).toBe('/var/lib/puzzled')
    expect(defaultStateDirectory(7, { HOME: '/home/u', XDG_STATE_HOME: '/x' })).toBe('/x/puzzled')
    expect(defaultStateDirectory(7, { HOME: '/home/u', XDG_STATE_HOME: 'x' })).toBe(
      '/home/u/.local/state/puzzled',
    )
    expect(() => defaultStateDirectory(7, {})).toThrow(/absolute path/)
  })

  it.each(['ext4', 'xfs', 'btrfs'])('may be on %s', (type) =>
    expect(unsuitableState('/s', type)).toBeUndefined(),
  )

  it.each([
    ['tmpfs', /reboot/],
    ['nfs', /network/],
    ['fuse', /FUSE/],
    ['overlay', /container/],
    ['9p', /another machine/],
    ['0x1234', /not known/],
  ])('may not be on %s, and says why', (type, why) => {
    const error = unsuitableState('/some/place', type)
    expect(error).toMatchObject({ code: 'state-unsuitable', data: { filesystem: type } })
    expect(error?.message).toMatch(why)
    expect(error?.message).toContain('"/some/place"')
    expect(error?.hint).toContain('--state-dir')
  })

  it('may be volatile when that is asked for, and then on tmpfs only', () => {
    expect(unsuitableState('/s', 'tmpfs', true)).toBeUndefined()
    expect(unsuitableState('/s', 'overlay', true)?.code).toBe('state-unsuitable')
  })

  it('is told when a part of it is refused by the system; other errors stay what they are', () => {
    const refused = (code: string, path?: string): Error => Object.assign(new Error('no'), { code, path })
    expect(unreadableState(refused('ENOTDIR', '/s/journal'), '/s')).toMatchObject({
      ...{ code: 'state-unreadable', data: { path: '/s/journal', errno: 'ENOTDIR' } },
      message: 'Cannot use "/s/journal" of the store: it is not a directory',
    })
    expect(unreadableState(refused('ENOSPC', '/s/version'), '/s')).toMatchObject({ code: 'no-space' })
    for (const other of [refused('EIO'), refused('EIO', '/store/x'), new Error('defect'), undefined])
      expect(unreadableState(other, '/s')).toBe(other)
  })
})
