import { describe, expect, it } from 'vitest'
import { isBelow, kernelMounts, mountsBelow, parseMountinfo } from './mountinfo.ts'

/** `id parent target`, one per line. */
const table = (...lines: string[]): Buffer =>
  Buffer.from(
    lines
      .map((line) => line.split(' '))
      .map(
        ([id, parent, target]) => `${id} ${parent} 0:1 / ${target} rw shared:1 master:2 - tmpfs none rw
`,
      )
      .join(''),
  )

describe('parseMountinfo', () => {
  it('reads every field', () => {
    const [entry] = parseMountinfo(
      Buffer.from('36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n'),
    )
    expect(entry).toEqual({
      id: 36,
      parent: 35,
      root: Buffer.from('/mnt1'),
      target: Buffer.from('/mnt2'),
      options: ['rw', 'noatime'],
      propagation: ['master:1'],
      type: 'ext3',
      source: '/dev/root',
      superOptions: 'rw,errors=continue',
    })
  })

  it('brings odd names back as bytes', () => {
    const text = Buffer.concat([
      Buffer.from('1 0 0:1 / /a\\040b\\011c\\012d\\134e'),
      Buffer.from([0xff]),
      Buffer.from(' rw - tmpfs none rw\n'),
    ])
    expect(parseMountinfo(text)[0]?.target).toEqual(
      Buffer.concat([Buffer.from('/a b\tc\nd\\e'), Buffer.from([0xff])]),
    )
  })

  it('refuses a line that it does not know', () =>
    expect(() => parseMountinfo(Buffer.from('1 2 3\n'))).toThrow('unknown form'))
})

describe('mountsBelow', () => {
  const below = (directory: string, ...lines: string[]): string[] =>
    mountsBelow(parseMountinfo(table('1 0 /', ...lines)), Buffer.from(directory)).map(
      (entry) => `${entry.id} ${entry.target}`,
    )

  it('finds nested mounts and nothing beside them', () =>
    expect(below('/p', '2 1 /p', '3 2 /p/x', '4 3 /p/x/y', '5 1 /pq', '6 1 /o')).toEqual([
      '3 /p/x',
      '4 /p/x/y',
    ]))

  it('leaves out what another mount covers', () => {
    expect(below('/p', '2 1 /p/x/y', '3 1 /p/x')).toEqual(['3 /p/x'])
    expect(below('/p', '2 1 /p/x', '3 1 /p')).toEqual([])
    expect(below('/p', '2 1 /p/x', '3 2 /p/x')).toEqual(['3 /p/x'])
    expect(below('/p', '2 1 /p', '3 2 /p/x', '4 2 /p')).toEqual([])
  })

  it('keeps what is mounted inside the covering mount, whatever the order of the lines', () =>
    expect(below('/p', '4 3 /p/x/y', '2 1 /p/x', '3 2 /p/x')).toEqual(['3 /p/x', '4 /p/x/y']))

  it('works for the root', () => expect(below('/', '2 1 /a')).toEqual(['2 /a']))
})

describe('kernelMounts', () => {
  it('finds the outermost of each, once', () => {
    const typed = (type: string, ...targets: string[]): string =>
      targets.map((target) => `2 1 0:1 / ${target} rw shared:1 - ${type} none rw`).join('\n')
    const text = [
      typed('proc', '/c/proc', '/c/proc/sys', '/c/proc'),
      typed('nsfs', '/a\\040b'),
      typed('tmpfs', '/c/proc/x', '/t'),
    ]
    const found = kernelMounts(Buffer.from(`${text.join('\n')}\n`))
    expect(found.map(({ target }) => target.toString())).toEqual(['/c/proc', '/a b'])
  })
})

describe('isBelow', () => {
  it('compares components, not characters', () => {
    const at = (a: string, b: string): boolean => isBelow(Buffer.from(a), Buffer.from(b))
    expect([at('/a/b', '/a'), at('/ab', '/a'), at('/a', '/a'), at('/a', '/')]).toEqual([
      true,
      false,
      false,
      true,
    ])
  })
})
