import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { SteadyFile } from './steady-file.ts'

describe('a steady file', () => {
  let folder = ''
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'steady-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  const steady = () => {
    const understood: string[] = []
    const path = join(folder, 'group')
    const file = new SteadyFile(path, (text) => {
      understood.push(text)
      return text.length
    })
    return { path, file, understood }
  }

  it('is understood once while it is the same, and again when another one took its place', async () => {
    const { path, file, understood } = steady()
    writeFileSync(path, 'one')
    expect([await file.read(), await file.read()]).toEqual([3, 3])
    // As every tool does that changes such a file: the same size, within the same tick.
    writeFileSync(`${path}.new`, 'two')
    renameSync(`${path}.new`, path)
    await file.read()
    expect(understood).toEqual(['one', 'two'])
  })

  it('is understood again when it was written over', async () => {
    const { path, file } = steady()
    writeFileSync(path, 'one')
    await file.read()
    writeFileSync(path, 'three')
    expect(await file.read()).toBe(5)
  })

  it('has no meaning once it is gone', async () => {
    const { path, file } = steady()
    writeFileSync(path, 'one')
    await file.read()
    rmSync(path)
    await expect(file.read()).rejects.toMatchObject({ code: 'ENOENT' })
  })
})
