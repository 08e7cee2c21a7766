import { describe, expect, it, vi } from 'vitest'
import * as uapi from '../daemon/kernel/uapi/index.ts'
import {
  ARCHITECTURES,
  type Architecture,
  extractSection,
  extractSyscalls,
  missingCompiler,
  parseNames,
  readSections,
} from '../tools/uapi/extract.ts'

const sections = readSections()
const TABLE = { x64: uapi.X64_SYSCALLS, arm64: uapi.ARM64_SYSCALLS }

/** What the committed files say for one architecture, by the names that C uses. */
async function committed(architecture: Architecture): Promise<Map<string, bigint>> {
  const values = new Map<string, bigint>()
  const modules = await underArchitecture(architecture)
  for (const [name, value] of Object.entries(modules)) {
    if (typeof value === 'number' || typeof value === 'bigint') values.set(name, BigInt(value))
    else if (!/SYSCALLS$|^NR$/.test(name))
      for (const [field, offset] of Object.entries(value)) values.set(`${name}.${field}`, BigInt(offset))
  }
  return values
}

/** The files choose by process.arch when they are loaded, so they are loaded again under the other name. */
async function underArchitecture(
  architecture: Architecture,
): Promise<Record<string, object | number | bigint>> {
  const real = Object.getOwnPropertyDescriptor(process, 'arch')
  if (real === undefined) throw new Error('process.arch is gone')
  Object.defineProperty(process, 'arch', { ...real, value: architecture })
  try {
    vi.resetModules()
    return { ...(await import('../daemon/kernel/uapi/index.ts')) }
  } finally {
    Object.defineProperty(process, 'arch', real)
    // Whoever imports them next gets those of this machine.
    vi.resetModules()
  }
}

for (const architecture of ARCHITECTURES) {
  const missing = missingCompiler(architecture)
  if (missing !== undefined) console.warn(`skipped: uapi against C for ${architecture}: ${missing}`)

  describe.skipIf(missing !== undefined)(`uapi of ${architecture}`, () => {
    it('has the values and layouts that C has', async () => {
      const mine = await committed(architecture)
      const wrong: string[] = []
      let compared = 0
      for (const section of sections)
        for (const [name, value] of extractSection(architecture, section)) {
          compared++
          if (mine.get(name) !== value) wrong.push(`${name}: C has ${value}, we have ${mine.get(name)}`)
        }
      expect(wrong).toEqual([])
      expect(compared).toBe(mine.size)
      expect(compared).toBeGreaterThan(900)
    })

    it('has the system call numbers that C has', () => {
      const mine = new Map(Object.entries(TABLE[architecture]).map(([name, nr]) => [name, BigInt(nr)]))
      expect(mine).toEqual(new Map(extractSyscalls(architecture)))
      expect(mine.size).toBeGreaterThan(300)
    })
  })
}

describe('the list of names', () => {
  it('is parsed', () => {
    const text = '# note\n[a]\n#include <b.h>\nC D\nE\nstruct f_t = f: g h\n'
    expect(parseNames(text)).toEqual([
      {
        name: 'a',
        includes: ['#include <b.h>'],
        constants: ['C', 'D', 'E'],
        structs: [{ type: 'f_t', name: 'f', fields: ['g', 'h'] }],
      },
    ])
  })

  it('differs between architectures where the kernel does', async () => {
    expect((await committed('x64')).get('O_DIRECTORY')).toBe(0o200000n)
    expect((await committed('arm64')).get('O_DIRECTORY')).toBe(0o40000n)
    expect(uapi.X64_SYSCALLS.openat2).toBe(uapi.ARM64_SYSCALLS.openat2)
    expect(uapi.X64_SYSCALLS.mount).not.toBe(uapi.ARM64_SYSCALLS.mount)
  })
})
