import { spawnSync } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { documentBlocks } from '../../e2e/stage/documents.ts'
import { bare, elsewhere } from '../../e2e/stage/elsewhere.ts'

const program = fileURLToPath(new URL('../../../dist/puzzlectl.js', import.meta.url))
const unit = '/etc/systemd/system/puzzled.service'

/** The commands of the documents that need systemd, in their order, as root types them. */
const commands = documentBlocks()
  .filter(({ document }) => document === 'docs/operations.md')
  .flatMap(({ document, steps }) =>
    steps
      .filter(({ command }) => elsewhere(document, command)?.where === 'vm')
      .map(({ command }) => bare(command)),
  )
  .filter((command) => /^(sudo )?puzzlectl /.test(command))

function type(command: string): { status: number | null; text: string } {
  const words = command
    .replace(/^sudo /, '')
    .split(' ')
    .slice(1)
  const done = spawnSync(process.execPath, [program, ...words], { encoding: 'utf8' })
  return { status: done.status, text: done.stdout + done.stderr }
}

describe('docs/operations.md under systemd', () => {
  afterAll(() => {
    spawnSync('systemctl', ['disable', '--now', 'puzzled.service'])
    rmSync(unit, { force: true })
  })

  it('has these commands', () =>
    expect(commands).toEqual([
      'sudo puzzlectl daemon install',
      'puzzlectl daemon status',
      'sudo puzzlectl daemon uninstall',
    ]))

  it('does what it says with each of them', () => {
    const [install = '', status = '', uninstall = ''] = commands
    expect(type(status)).toMatchObject({ status: 3, text: expect.stringContaining('installed: no') })
    const installed = type(install)
    expect(installed, installed.text).toMatchObject({ status: 0 })
    expect(installed.text).toContain('puzzled.service is running')
    expect(type(status)).toMatchObject({
      status: 0,
      text: expect.stringMatching(/installed: yes\nstate: +active/),
    })
    expect(type('puzzlectl ls')).toMatchObject({ status: 0 })
    const gone = type(uninstall)
    expect(gone, gone.text).toMatchObject({ status: 0 })
    expect(existsSync(unit)).toBe(false)
    expect(existsSync('/var/lib/puzzled')).toBe(true)
  })
})
