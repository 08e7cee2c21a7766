import { spawn } from 'node:child_process'
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { needs, program, root } from '../tier/needs.ts'
import { privateBus } from './private-bus.ts'

const repository = fileURLToPath(new URL('../..', import.meta.url))
const page = readFileSync(join(repository, 'docs/typescript.md'), 'utf8')
const block = (language: string): string =>
  new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'ms').exec(page)?.[1] ?? ''

let dir = ''
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'puzzled-client-'))
  mkdirSync(join(dir, 'project'))
  mkdirSync(join(dir, 'app/node_modules'), { recursive: true })
  symlinkSync(repository, join(dir, 'app/node_modules/puzzled'))
  chownSync(join(dir, 'project'), 33, 33)
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

/** Runs the page's program as somebody who has the package installed. */
async function perform(
  code: string,
  cwd: string,
  environment: Readonly<Record<string, string>>,
): Promise<string> {
  const file = join(dir, 'app/main.mjs')
  writeFileSync(file, code)
  const { NODE_EXTRA_CA_CERTS: _, ...inherited } = process.env
  const child = spawn(process.execPath, [file], { cwd, env: { ...inherited, ...environment } })
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
  const status = await new Promise((resolve) => child.on('close', resolve))
  return status === 0 ? text : `${text}\nexit status ${status}`
}

describe('the program of docs/typescript.md', () => {
  needs(root)('works on a store of its own', async () => {
    const state = JSON.stringify({ stateDir: join(dir, 'state') })
    const code = block('js').replace('connect()', `connect(${state})`)
    const project = join(dir, 'project')
    expect(await perform(code, project, {})).toBe(block('text'))
    expect(readFileSync(join(project, 'note.txt'), 'utf8')).toBe('by an agent\n')
    // It held the store only while it ran.
    expect(await perform(code, project, {})).toContain('exit 0, held, 0 added')
  })

  needs(root, program('dbus-daemon'))('works with the daemon, letter for letter the same', async () => {
    const here = await privateBus()
    try {
      const environment = { DBUS_SYSTEM_BUS_ADDRESS: here.address }
      expect(await perform(block('js'), here.project, environment)).toBe(block('text'))
      expect(readFileSync(join(here.project, 'note.txt'), 'utf8')).toBe('by an agent\n')
    } finally {
      await here.close()
    }
  })
})
