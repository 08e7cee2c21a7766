import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import type { DoctorReport } from '../../daemon/contract/doctor.ts'
import { FEATURE_NAMES } from '../../daemon/contract/features.ts'
import { needs, root } from '../tier/needs.ts'

const program = fileURLToPath(new URL('../../dist/puzzlectl.js', import.meta.url))
const fuseServer = fileURLToPath(new URL('../fixtures/fuse-server.mjs', import.meta.url))
const asRoot = needs(root)

interface Options {
  uid?: number
  environment?: Record<string, string>
}

function puzzlectl(args: readonly string[], { uid, environment = {} }: Options = {}) {
  const identity = uid === undefined ? {} : { uid, gid: uid }
  const env = { PATH: process.env.PATH, HOME: '/nonexistent', TMPDIR: tmpdir(), ...environment }
  const run = spawnSync(process.execPath, [program, ...args], {
    encoding: 'utf8',
    env,
    cwd: '/',
    ...identity,
  })
  return { status: run.status, out: run.stdout, err: run.stderr }
}

const doctor = (state: string, options: Options = {}): DoctorReport & { status: number | null } => {
  const run = puzzlectl(['doctor', '--json', '--state-dir', state], options)
  return { ...(JSON.parse(run.out) as DoctorReport), status: run.status }
}

asRoot('has a row for every feature and leaves nothing behind', () => {
  const report = doctor(join(tmpdir(), 'deep', 'state'))
  expect(report.version).toBe(1)
  expect(report.features.map(({ name }) => name)).toEqual([...FEATURE_NAMES])
  expect(report.state).toMatchObject({ exists: false, problem: null })
  expect(report.ready).toBe(true)
  expect(report.status).toBe(0)
  expect(readdirSync(tmpdir())).toEqual([])
})

asRoot('answers as a poorer machine, and refuses a wish that it does not know', () => {
  const environment = { PUZZLED_TEST_FEATURES: 'overlay:0' }
  const report = doctor(tmpdir(), { environment })
  expect(report.features.find(({ name }) => name === 'overlay')?.state).toBe('missing')
  expect([report.ready, report.status]).toEqual([false, 69])
  const wrong = puzzlectl(['doctor'], { environment: { PUZZLED_TEST_FEATURES: 'overlay' } })
  expect(wrong.status).toBe(2)
  expect(wrong.err).toMatch(/unknown entry "overlay"\n {2}hint: /)
})

asRoot('refuses a state directory on tmpfs or on an overlay, each with its reason', () => {
  const place = mkdtempSync(join(tmpdir(), 'mounts-'))
  const folder = (name: string): string => {
    const path = join(place, name)
    mkdirSync(path)
    return path
  }
  const memory = folder('memory')
  const [lower, upper, work, merged] = ['lower', 'upper', 'work', 'merged'].map(folder)
  execFileSync('mount', ['-t', 'tmpfs', 'none', memory])
  execFileSync('mount', [
    '-t',
    'overlay',
    '-o',
    `lowerdir=${lower},upperdir=${upper},workdir=${work}`,
    'none',
    merged ?? '',
  ])
  const onMemory = doctor(join(memory, 'state'))
  const allowed = doctor(join(memory, 'state'), { environment: { PUZZLED_ALLOW_VOLATILE_STATE: '1' } })
  const onOverlay = doctor(merged ?? '', { environment: { PUZZLED_ALLOW_VOLATILE_STATE: '1' } })
  for (const mount of [memory, merged ?? '']) execFileSync('umount', [mount])
  rmSync(place, { recursive: true })
  expect(onMemory).toMatchObject({ status: 78, ready: false, state: { filesystem: 'tmpfs' } })
  expect(onMemory.state.problem).toMatchObject({
    code: 'state-unsuitable',
    message: expect.stringContaining('reboot'),
  })
  expect(allowed.state.problem).toBeNull()
  expect(onOverlay.state.problem?.message).toContain('itself an overlay')
  expect(onOverlay.status).toBe(78)
})

const noFuse = existsSync('/dev/fuse') ? undefined : 'needs /dev/fuse'
needs(root, noFuse)('refuses a state directory that a program serves, also to run', async () => {
  const place = mkdtempSync(join(tmpdir(), 'fuse-'))
  const server = spawn(process.execPath, [fuseServer, place], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(server, 'close')
  await once(server.stdout, 'data')
  const report = doctor(place)
  const started = puzzlectl(['run', '--state-dir', place, '--', 'true'])
  execFileSync('umount', [place])
  await ended
  rmdirSync(place)
  expect(report).toMatchObject({ status: 78, ready: false, state: { filesystem: 'fuse' } })
  expect(report.state.problem?.message).toContain('served by a program (FUSE)')
  expect([started.status, started.out]).toEqual([78, ''])
  expect(started.err).toMatch(/served by a program \(FUSE\).*\n {2}hint: .*--state-dir/)
})

asRoot('says who may not use the state directory, and when it is none', () => {
  const closed = mkdtempSync(join(tmpdir(), 'closed-'))
  const file = join(closed, 'file')
  writeFileSync(file, '')
  chmodSync(tmpdir(), 0o755)
  const environment = { TMPDIR: '/tmp' }
  const denied = doctor(join(closed, 'state'), { uid: 65534, environment })
  expect(denied.state.problem).toMatchObject({
    code: 'state-unreadable',
    message: expect.stringContaining('EACCES'),
    hint: expect.stringContaining('root'),
  })
  expect(denied.status).toBe(74)
  const noDirectory = doctor(file)
  rmSync(closed, { recursive: true })
  expect(noDirectory.state.problem?.message).toContain('ENOTDIR')
  expect(noDirectory.status).toBe(74)
})

asRoot('names the package of a library that is not there', () => {
  const library = '/usr/lib/x86_64-linux-gnu/libseccomp.so.2'
  const nothing = join(tmpdir(), 'empty')
  writeFileSync(nothing, '')
  execFileSync('mount', ['--bind', nothing, library])
  const report = doctor(tmpdir())
  execFileSync('umount', [library])
  rmSync(nothing)
  const row = report.features.find(({ name }) => name === 'seccomp')
  expect(row).toMatchObject({ state: 'missing', remedy: 'apt-get install libseccomp2' })
  expect(row?.detail).toContain('libseccomp.so.2')
})

asRoot('works without root, and then says what needs it', () => {
  const home = mkdtempSync(join(tmpdir(), 'home-'))
  chmodSync(tmpdir(), 0o755)
  execFileSync('chown', ['65534:65534', home])
  const report = doctor(join(home, 'state'), { uid: 65534, environment: { TMPDIR: home } })
  const left = readdirSync(home)
  rmdirSync(home)
  expect(left).toEqual([])
  expect(report.host.uid).toBe(65534)
  expect(report.features.find(({ name }) => name === 'pidfd')?.state).toBe('have')
  expect(report.features.find(({ name }) => name === 'overlay')).toMatchObject({ state: 'missing' })
  expect(report.status).toBe(69)
})

it('suggests the verb and the option that were meant, and ends with 2', () => {
  const verb = puzzlectl(['docter'])
  expect([verb.status, verb.out]).toEqual([2, ''])
  expect(verb.err).toMatch(/unknown command 'docter'; did you mean doctor\?\n/)
  const option = puzzlectl(['doctor', '--jsom'])
  expect([option.status, option.out]).toEqual([2, ''])
  expect(option.err).toMatch(/unknown option '--jsom'; did you mean --json\?\n/)
})

it('knows its version', () => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  for (const option of ['--version', '-V'])
    expect(puzzlectl([option])).toEqual({ status: 0, out: `puzzlectl ${version}\n`, err: '' })
})

it('ends without a word when the reader of its output has gone', () => {
  const script = `"$0" "$1" completion bash | :; exit "\${PIPESTATUS[0]}"`
  const run = spawnSync('bash', ['-c', script, process.execPath, program], { encoding: 'utf8' })
  expect([run.status, run.stderr]).toEqual([0, ''])
})
