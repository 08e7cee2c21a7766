import { describe, expect, it } from 'vitest'
import { lackOfRights, type OwnRights } from './root-rights.ts'

const ALL = 0x1ffffffffffn
const own = (
  change: { without?: bigint; core?: string; files?: number; userNamespace?: string } = {},
): OwnRights => ({
  status: `Name:\tnode\nCapEff:\t${(ALL & ~(1n << (change.without ?? 63n))).toString(16).padStart(16, '0')}\n`,
  limits: `Max core file size        0                    ${change.core ?? 'unlimited'}            bytes     \nMax open files            ${change.files ?? 1024}                 ${change.files ?? 1024}                 files     \n`,
  userNamespace: change.userNamespace ?? 'user:[4026531837]',
})

describe('root', () => {
  it('with every capability is enough', () => expect(lackOfRights(own())).toBeNull())

  it.each([
    ['CAP_CHOWN', 0n],
    ['CAP_SETPCAP', 8n],
    ['CAP_SYS_ADMIN', 21n],
    ['CAP_MKNOD', 27n],
  ])('without %s is told so by name', (name, without) => {
    const error = lackOfRights(own({ without }))
    expect(error).toMatchObject({ code: 'not-root', data: { missing: [name] } })
    expect(error?.hint).toContain('--privileged')
  })

  it('needs to raise limits only where the one of cores is 0', () => {
    expect(lackOfRights(own({ without: 24n }))).toBeNull()
    expect(lackOfRights(own({ without: 24n, core: '0        ' }))?.message).toContain('CAP_SYS_RESOURCE')
  })

  it('does without what nothing needs', () => expect(lackOfRights(own({ without: 13n }))).toBeNull())

  it('with few open files is told how to have more', () => {
    expect(lackOfRights(own({ files: 255 }))).toMatchObject({
      code: 'kernel-refused',
      hint: 'ulimit -n 1024',
    })
    expect(lackOfRights(own({ files: 256 }))).toBeNull()
  })

  it('of a user namespace is none, whatever it may do there', () =>
    expect(lackOfRights(own({ userNamespace: 'user:[4026532500]' }))?.message).toMatch(/^Root of a user/))
})
