import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { INIT_RECORDS } from '../../daemon/contract/spawn.ts'
import { needs, program } from '../tier/needs.ts'

const file = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))

const MACHINES = {
  x64: { compiler: 'x86_64-linux-gnu-gcc', emulator: process.arch === 'x64' ? undefined : 'qemu-x86_64' },
  arm64: {
    compiler: 'aarch64-linux-gnu-gcc',
    emulator: process.arch === 'arm64' ? undefined : 'qemu-aarch64',
  },
} as const

describe.each(Object.entries(MACHINES))('the C of %s', (arch, { compiler, emulator }) => {
  const runnable = emulator === undefined ? undefined : program(emulator)
  const run = (executable: string, args: readonly string[], stdio: (number | 'ignore')[] = []) => {
    const command = emulator === undefined ? [executable, ...args] : [emulator, executable, ...args]
    const options = { encoding: 'utf8', timeout: 30_000, ...(stdio.length > 0 ? { stdio } : {}) } as const
    return spawnSync(command[0] ?? '', command.slice(1), options)
  }

  needs(program(compiler), runnable)('walks a list of calls', () => {
    const folder = mkdtempSync(join(tmpdir(), 'walk-'))
    const executable = join(folder, 'walk')
    const sources = [file('test/native/walk.c'), file('daemon/native/spawn.c')]
    execFileSync(compiler, ['-static', '-O2', '-DPATIENCE_SECONDS=1', '-o', executable, ...sources])
    const lines = run(executable, []).stdout.trim().split('\n')
    rmSync(folder, { recursive: true })
    expect(lines.slice(0, -1)).toEqual([
      'walk: 6 walked, stored 6, exit 125',
      'failure: at 4 returned 1 result -9',
      'door: at 0 result -9',
      'exec: exit 0 returned 0',
      'refused: exit 125 at -1 returned 1',
      'abandoned: exit 125 at -1 returned 1',
      'signals: ended by 13 at 0',
    ])
    // Emulation in user space has no clone3; then the line says so, and so do we.
    const clone = lines.at(-1)
    if (emulator === undefined) expect(clone).toBe('clone: status 0 at 1, its own pid: yes')
    else console.warn(`${arch}: ${clone}`)
  })

  needs(runnable)('has an init that reports how its child ended', () => {
    const folder = mkdtempSync(join(tmpdir(), 'init-'))
    const init = file(`daemon/native/prebuilt/${arch}/init`)
    const records = (argv: readonly string[]): Record<number, number> => {
      const output = openSync(join(folder, 'records'), 'w+')
      const done = run(init, ['5', '-', ...argv], ['ignore', 'ignore', 'ignore', 'ignore', 'ignore', output])
      closeSync(output)
      const bytes = readFileSync(join(folder, 'records'))
      const found: Record<number, number> = { [-1]: done.status ?? -1 }
      for (let at = 0; at < bytes.length; at += 8) found[bytes.readUInt32LE(at)] = bytes.readInt32LE(at + 4)
      return found
    }
    const ended = records(['sh', '-c', 'sleep 0.1; exit 7'])
    const missing = records(['no-such-command'])
    const signalled = records(['sh', '-c', 'kill -TERM $$'])
    rmSync(folder, { recursive: true })
    expect(ended).toMatchObject({ [-1]: 7, [INIT_RECORDS.ended]: 7 << 8 })
    expect(ended[INIT_RECORDS.started]).toBeGreaterThan(0)
    expect(missing).toEqual({ [-1]: 127, [INIT_RECORDS.execFailed]: 2 })
    expect((signalled[INIT_RECORDS.ended] ?? 0) & 0x7f).toBe(15)
  })
})

describe.each(['daemon/native/prebuilt', 'bpf/prebuilt'])('%s', (folder) => {
  it('is what SHA256SUMS says', () => {
    const lines = readFileSync(file(`${folder}/SHA256SUMS`), 'utf8')
      .trim()
      .split('\n')
    const sums = lines.filter((line) => !line.startsWith('#'))
    expect(sums.length).toBeGreaterThan(1)
    for (const line of sums) {
      const [sum, name = ''] = line.split('  ')
      expect([
        name,
        createHash('sha256')
          .update(readFileSync(file(`${folder}/${name}`)))
          .digest('hex'),
      ]).toEqual([name, sum])
    }
  })
})
