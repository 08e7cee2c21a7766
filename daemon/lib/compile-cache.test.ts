import { createHash } from 'node:crypto'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { compileCache, keepCompiled } from './compile-cache.ts'

/** What the version of the code under test answers; what a hostile cache would make of it is another number. */
const CODE = 'exports.answer = function answer() { return 41 + 1 }\nexports.answer()\n'
const HOSTILE = CODE.replace('41 + 1', '66 + 0')

describe('what was compiled', () => {
  let root: string
  let code: string
  let cache: string
  const folder = (): string => join(cache, `${process.version}-${process.arch}`)
  const load = (name = 'a.js'): { answer: () => number } => {
    const require = createRequire(join(code, name))
    delete require.cache[join(code, name)]
    return require(join(code, name)) as { answer: () => number }
  }
  /** As one command does: load, run, and save at its end. */
  const command = (): number => {
    const save = keepCompiled(code, cache)
    try {
      return load().answer()
    } finally {
      save()
    }
  }
  const kept = (): string => join(folder(), 'a.js')
  /** What V8 compiled, behind a seal that is right for the code. */
  const seal = (compiled: Buffer): Buffer =>
    Buffer.concat([createHash('sha256').update(CODE).update('\0').update(compiled).digest(), compiled])
  const compiledHostile = (): Buffer => {
    writeFileSync(join(code, 'a.js'), HOSTILE)
    command()
    writeFileSync(join(code, 'a.js'), CODE)
    return readFileSync(kept()).subarray(32)
  }
  /** A cache as it would be accepted for the code, that answers something else. */
  const poison = (): void => writeFileSync(kept(), seal(compiledHostile()), { mode: 0o600 })

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'compiled-'))
    code = join(root, 'chunks')
    cache = join(root, 'cache')
    mkdirSync(code)
    writeFileSync(join(code, 'a.js'), CODE)
  })
  afterEach(() => rmSync(root, { recursive: true }))

  it('is kept', () => {
    expect(command()).toBe(42)
    expect(readdirSync(folder())).toEqual(['a.js'])
  })

  it('is used: this is what a poisoned cache could do', () => {
    poison()
    expect(command()).toBe(66)
  })

  it('is of this very source, not of another one that is as long', () => {
    compiledHostile()
    expect(command()).toBe(42)
    expect(command()).toBe(42)
  })

  it('may be damaged anywhere, and is then made anew', () => {
    command()
    const whole = readFileSync(kept())
    // V8 takes such a file: it ends the process, or runs something that nobody wrote.
    for (let at = 0; at < whole.length; at += 97) {
      const damaged = Buffer.from(whole)
      damaged.writeUInt8(damaged.readUInt8(at) ^ 0x10, at)
      writeFileSync(kept(), damaged, { mode: 0o600 })
      expect(command()).toBe(42)
      expect(readFileSync(kept()).equals(damaged)).toBe(false)
    }
    for (const length of [0, 16, 32, whole.length - 1]) {
      writeFileSync(kept(), whole.subarray(0, length), { mode: 0o600 })
      expect(command()).toBe(42)
    }
  })

  it('may be removed while the command runs', () => {
    const save = keepCompiled(code, cache)
    load()
    rmSync(cache, { recursive: true })
    expect(save).not.toThrow()
  })

  it('is not taken from a file that others can write', () => {
    poison()
    chmodSync(join(folder(), 'a.js'), 0o666)
    expect(command()).toBe(42)
  })

  it('is not taken from a directory that others can write', () => {
    poison()
    chmodSync(folder(), 0o777)
    expect(command()).toBe(42)
    chmodSync(folder(), 0o700)
    chmodSync(cache, 0o770)
    expect(command()).toBe(42)
  })

  it('is not taken through a symlink', () => {
    poison()
    const elsewhere = join(root, 'elsewhere')
    writeFileSync(elsewhere, '')
    rmSync(join(folder(), 'a.js'))
    symlinkSync(elsewhere, join(folder(), 'a.js'))
    expect(command()).toBe(42)
    rmSync(cache, { recursive: true })
    mkdirSync(join(root, 'other'))
    symlinkSync(join(root, 'other'), cache)
    expect(command()).toBe(42)
    expect(readdirSync(join(root, 'other'))).toEqual([])
  })

  it('may be garbage, and the code runs all the same', () => {
    command()
    writeFileSync(join(folder(), 'a.js'), 'garbage', { mode: 0o600 })
    expect(command()).toBe(42)
  })

  it('may be impossible to keep', () => {
    cache = join(root, 'no', 'such', 'place')
    expect(command()).toBe(42)
  })

  it('has a place that the environment of root cannot choose', () => {
    const environment = { XDG_CACHE_HOME: '/tmp/evil', HOME: '/home/somebody' }
    expect(compileCache(environment, 0)).toBe('/var/cache/puzzled')
    expect(compileCache(environment, 1000)).toBe('/tmp/evil/puzzled-compiled')
    expect(compileCache({ HOME: '/home/somebody' }, 1000)).toBe('/home/somebody/.cache/puzzled-compiled')
    expect(compileCache({ HOME: 'relative' }, 1000)).toBeUndefined()
    expect(compileCache({ PUZZLED_COMPILE_CACHE: '0' }, 0)).toBeUndefined()
  })
})
