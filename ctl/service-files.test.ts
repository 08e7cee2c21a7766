import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { needs, root } from '../test/tier/needs.ts'
import { refuseWritableCode, removeServiceFiles, serviceFiles, writeServiceFiles } from './service-files.ts'

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'service-files-'))
})
afterEach(() => rmSync(dir, { recursive: true }))

describe('the files of a service', () => {
  it('start this Node with this installation', () => {
    const unit = serviceFiles(dir).find(({ target }) => target.endsWith('/puzzled.service'))
    expect(unit?.target).toBe(join(dir, 'etc/systemd/system/puzzled.service'))
    expect(unit?.content).toMatch(new RegExp(`^ExecStart=${process.execPath} /.*/dist/puzzled\\.js$`, 'm'))
    expect(serviceFiles(dir).every(({ content }) => !content.includes('=/usr/bin/puzzle'))).toBe(true)
  })

  it('are written once, and only what changed is written again', async () => {
    const files = serviceFiles(dir)
    expect(await writeServiceFiles(files)).toHaveLength(files.length)
    expect(await writeServiceFiles(files)).toEqual([])
    writeFileSync(files[0]?.target ?? '', 'edited')
    expect(await writeServiceFiles(files)).toEqual([files[0]?.target])
    expect(removeServiceFiles(files)).toHaveLength(files.length)
    expect(removeServiceFiles(files)).toEqual([])
  })

  it('are all written or none', async () => {
    const files = serviceFiles(dir)
    const [first, second] = files
    mkdirSync(join(dir, 'etc/systemd/system'), { recursive: true })
    writeFileSync(first?.target ?? '', 'of before')
    // A folder in the place of the file: the rename fails.
    mkdirSync(join(`${second?.target}.new`, 'in the way'), { recursive: true })
    await expect(writeServiceFiles(files)).rejects.toThrow(/EISDIR/)
    expect(readFileSync(first?.target ?? '', 'utf8')).toBe('of before')
    expect(existsSync(join(dir, 'etc/dbus-1/system.d/org.puzzled1.conf'))).toBe(false)
    expect(readdirSync(join(dir, 'etc/systemd/system'))).toHaveLength(2)
  })
})

needs(root)('code that others than root could write is refused as a service', () => {
  mkdirSync(join(dir, 'package'))
  chmodSync(dir, 0o755)
  expect(() => refuseWritableCode(join(dir, 'package'))).not.toThrow()
  chmodSync(dir, 0o775)
  expect(() => refuseWritableCode(join(dir, 'package'))).toThrow(expect.objectContaining({ code: 'usage' }))
})
