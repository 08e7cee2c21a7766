import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import type { AuditRecord } from '../../daemon/audit/record.ts'
import { JOURNAL_SOCKET } from '../../daemon/kernel/journald.ts'
import { program, root, systemd } from '../tier/needs.ts'
import { onBus } from './grounds.ts'
import { end, eventually, WHO } from './private-bus.ts'

/**
 * What the daemon tells the journal, field by field. Where systemd runs this is its journal; elsewhere a socket in the
 * journal's place, in a /run of this room only, whose owner takes the native protocol apart.
 */
const hasJournal = systemd === undefined
const READER = `
import json, socket, struct, sys
end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
end.bind(sys.argv[1])
print('{}', flush=True)
while True:
    data = end.recv(1 << 20)
    fields = {}
    while data:
        line, _, rest = data.partition(b'\\n')
        name, equals, value = line.partition(b'=')
        if equals:
            data = rest
        else:
            (size,) = struct.unpack('<Q', rest[:8])
            value, data = rest[8:8 + size], rest[9 + size:]
        fields[name.decode()] = value.decode()
    print(json.dumps(fields), flush=True)
`

let reader: ChildProcess | undefined
let heard = ''

// Before the bus and its daemon, which looks for the journal once, when it begins.
beforeAll(async () => {
  if (hasJournal || root !== undefined) return
  execFileSync('mount', ['-t', 'tmpfs', 'none', '/run'])
  mkdirSync(dirname(JOURNAL_SOCKET), { recursive: true })
  const child = spawn('python3', ['-c', READER, JOURNAL_SOCKET], { stdio: ['ignore', 'pipe', 'inherit'] })
  reader = child
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    heard += text
  })
  await once(child.stdout, 'data')
})
afterAll(async () => {
  if (reader === undefined) return
  await end(reader, 'SIGTERM')
  execFileSync('umount', ['-l', '/run'])
})

const { here, it } = onBus('all', program('python3'))

type Fields = Readonly<Record<string, string>>

function recordsOf(branch: string): Fields[] {
  if (hasJournal) execFileSync('journalctl', ['--sync'])
  const lines = hasJournal
    ? execFileSync('journalctl', ['-o', 'json', '--all', `PUZZLED_BRANCH=${branch}`], { encoding: 'utf8' })
    : heard
  return lines
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Fields)
    .filter(({ PUZZLED_BRANCH }) => PUZZLED_BRANCH === branch)
}

/** One branch for both tests: its command has lines that look like fields. */
let made: Promise<string> | undefined
const toldBranch = (): Promise<string> => {
  made ??= makeBranch()
  return made
}
async function makeBranch(): Promise<string> {
  const script = 'getent hosts nowhere.invalid; mkfifo pipe\nPUZZLED_BRANCH=other\nPRIORITY=0'
  await here.puzzlectl(WHO.developer, 'run', '--name', 'told', '--', 'sh', '-c', script)
  const { out } = await here.puzzlectl(WHO.developer, 'show', 'told', '--json')
  return (JSON.parse(out) as { id: string }).id
}

it('a denial arrives with its layer, its subject, its rule and what would help', async () => {
  const branch = await toldBranch()
  const denials = await eventually(async () => {
    const found = recordsOf(branch).filter(({ PUZZLED_KIND }) => PUZZLED_KIND === 'denial')
    if (!found.some(({ PUZZLED_LAYER }) => PUZZLED_LAYER === 'policy')) throw new Error('not yet')
    return found
  })
  expect(denials.find(({ PUZZLED_LAYER }) => PUZZLED_LAYER === 'dns')).toMatchObject({
    PRIORITY: '5',
    SYSLOG_IDENTIFIER: 'puzzled',
    MESSAGE: expect.stringMatching(new RegExp(`^denial ${branch} dns nowhere.invalid .+`)),
    PUZZLED_SUBJECT: 'nowhere.invalid',
    PUZZLED_RULE: 'no-rule',
    PUZZLED_MESSAGE: expect.stringContaining('No rule names the host'),
    PUZZLED_HELP: expect.stringContaining('nowhere.invalid'),
  })
  expect(denials.find(({ PUZZLED_LAYER }) => PUZZLED_LAYER === 'policy')).toMatchObject({
    PUZZLED_SUBJECT: expect.stringMatching(/\/pipe$/),
    PUZZLED_RULE: 'changeset/special-file',
  })
})

it('every audit record of the branch arrives once and in order, and no line break makes a field', async () => {
  const branch = await toldBranch()
  const { out } = await here.puzzlectl(
    WHO.root,
    'audit',
    'trace',
    branch,
    '--json',
    '--state-dir',
    here.state,
  )
  const traced = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as AuditRecord)
    .filter((record) => record.branch === branch)
    .map(({ seq, kind }) => [String(seq), kind])
  expect(traced.length).toBeGreaterThan(3)
  const arrived = await eventually(async () => {
    const found = recordsOf(branch).filter(({ PUZZLED_AUDIT_SEQ }) => PUZZLED_AUDIT_SEQ !== undefined)
    if (found.length < traced.length) throw new Error('not yet')
    return found
  })
  expect(arrived.map(({ PUZZLED_AUDIT_SEQ, PUZZLED_KIND }) => [PUZZLED_AUDIT_SEQ, PUZZLED_KIND])).toEqual(
    traced,
  )
  expect(arrived.some(({ PUZZLED_COMMAND }) => PUZZLED_COMMAND?.includes('PUZZLED_BRANCH=other'))).toBe(true)
  expect(recordsOf('other')).toEqual([])
  expect(arrived.every(({ PRIORITY }) => Number(PRIORITY) > 2)).toBe(true)
})
