import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { commandFiles } from '../../daemon/lib/command-files.ts'
import { type DurableFiles, nodeFiles } from '../../daemon/lib/durable.ts'
import { ModelDisk } from '../fakes/model-disk.ts'
import { ModelFiles } from '../fakes/model-files.ts'

const made: string[] = []
afterAll(() => {
  for (const path of made) rmSync(path, { recursive: true, force: true })
})

function temporary(): string {
  const path = mkdtempSync(join(tmpdir(), 'puzzled-durable-'))
  made.push(path)
  return path
}

const ADAPTERS: [string, () => { files: DurableFiles; path: string }][] = [
  ['node', () => ({ files: nodeFiles, path: temporary() })],
  ['a command', () => ({ files: commandFiles, path: temporary() })],
  ['the model disk', () => ({ files: new ModelFiles(new ModelDisk(['top'])), path: '/top' })],
]

describe.each(ADAPTERS)('records on %s', (_, make) => {
  it('are null before they are written, and whole after', async () => {
    const { files, path } = make()
    expect(await files.read(join(path, 'a'))).toBeNull()
    await files.writeRecord(join(path, 'a'), Buffer.from('a longer text'))
    await files.writeRecord(join(path, 'a'), Buffer.from('short'))
    expect(String(await files.read(join(path, 'a')))).toBe('short')
    expect(await files.list(path)).toEqual(['a'])
  })

  it('grow at the end', async () => {
    const { files, path } = make()
    await files.append(join(path, 'log'), Buffer.from('one\n'))
    await files.append(join(path, 'log'), Buffer.from('two\n'))
    expect(String(await files.read(join(path, 'log')))).toBe('one\ntwo\n')
  })

  it('live in directories that can be moved as a whole', async () => {
    const { files, path } = make()
    expect(await files.makeDirectory(join(path, 'from'))).toBe(true)
    expect(await files.makeDirectory(join(path, 'from'))).toBe(false)
    expect(await files.makeDirectory(join(path, 'trash'))).toBe(true)
    await files.writeRecord(join(path, 'from', 'r'), Buffer.from('x'))
    await files.move(join(path, 'from'), join(path, 'trash', 'to'))
    expect(await files.list(path)).toEqual(['trash'])
    expect(String(await files.read(join(path, 'trash', 'to', 'r')))).toBe('x')
    await expect(files.move(join(path, 'none'), join(path, 'b'))).rejects.toMatchObject({ code: 'ENOENT' })
  })
})

describe('a record on a disk that forgets', () => {
  it('is the old one or the new one after a power cut at any step', async () => {
    for (let step = 1; step <= 6; step++)
      for (const fate of ['kept', 'lost', 'torn'] as const) {
        const disk = new ModelDisk(['top'])
        const files = new ModelFiles(disk)
        await files.writeRecord('/top/r', Buffer.from('the old record'))
        disk.settle()
        disk.steps = 0
        disk.beforeStep = (at) => {
          if (at === step) disk.cutPower()
        }
        const heard = await files.writeRecord('/top/r', Buffer.from('the new one')).then(
          () => true,
          () => false,
        )
        disk.beforeStep = undefined
        disk.restart(() => fate)
        const found = String(await files.read('/top/r'))
        expect(['the old record', 'the new one'], `step ${step}, ${fate}`).toContain(found)
        if (heard) expect(found).toBe('the new one')
      }
  })
})
