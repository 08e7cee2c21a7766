import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { nodeFiles } from '../lib/durable.ts'
import { openStoreDirectory, STORE_FOLDERS } from './store-directory.ts'

let path: string
beforeEach(() => {
  process.env.PUZZLED_ALLOW_VOLATILE_STATE = '1'
  path = mkdtempSync(join(tmpdir(), 'puzzled-store-'))
})
afterEach(() => {
  delete process.env.PUZZLED_ALLOW_VOLATILE_STATE
  rmSync(path, { recursive: true, force: true })
})

describe('the store directory', () => {
  it('is made private, with its folders and its version', async () => {
    chmodSync(path, 0o755)
    const store = await openStoreDirectory(join(path, 'state'), nodeFiles)
    for (const folder of STORE_FOLDERS) expect(statSync(join(store.path, folder)).mode & 0o777).toBe(0o700)
    expect(readFileSync(join(store.path, 'version'), 'utf8')).toBe('1\n')
    expect(statSync(store.path).mode & 0o777).toBe(0o700)
    store.close()
  })

  it('belongs to one process, and to the next when that one has ended', async () => {
    const store = await openStoreDirectory(path, nodeFiles)
    await expect(openStoreDirectory(path, nodeFiles)).rejects.toMatchObject({
      code: 'state-locked',
      data: { holder: String(process.pid), long: false },
    })
    store.keeps(true)
    await expect(openStoreDirectory(path, nodeFiles)).rejects.toMatchObject({
      data: { holder: String(process.pid), long: true },
    })
    store.keeps(false)
    await expect(openStoreDirectory(path, nodeFiles)).rejects.toMatchObject({ data: { long: false } })
    store.close()
    store.keeps(true)
    const again = await openStoreDirectory(path, nodeFiles)
    again.close()
  })

  it.each([
    ['99\n', 'state-newer'],
    ['', 'record-damaged'],
    ['abc', 'record-damaged'],
  ])('of version %j is refused and kept', async (text, code) => {
    writeFileSync(join(path, 'version'), text)
    await expect(openStoreDirectory(path, nodeFiles)).rejects.toMatchObject({ code })
    expect(readFileSync(join(path, 'version'), 'utf8')).toBe(text)
  })

  it('is refused on filesystems that forget or are not local', async () => {
    await expect(openStoreDirectory('/proc/puzzled-store', nodeFiles)).rejects.toMatchObject({
      code: 'state-unsuitable',
    })
    await expect(openStoreDirectory('/dev/null', nodeFiles)).rejects.toMatchObject({
      code: 'state-unreadable',
    })
    delete process.env.PUZZLED_ALLOW_VOLATILE_STATE
    // devtmpfs or tmpfs: either forgets.
    await expect(openStoreDirectory('/dev', nodeFiles)).rejects.toMatchObject({
      code: 'state-unsuitable',
      hint: expect.stringContaining('--state-dir'),
    })
    const place = `/dev/puzzled-${process.pid}`
    await expect(openStoreDirectory(join(place, 'state'), nodeFiles)).rejects.toMatchObject({
      code: 'state-unsuitable',
    })
    expect(existsSync(place)).toBe(false)
  })
})
