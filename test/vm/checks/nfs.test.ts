import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const program = fileURLToPath(new URL('../../../dist/puzzlectl.js', import.meta.url))
const run = (command: string, ...args: string[]): string => execFileSync(command, args, { encoding: 'utf8' })
const NFSD = '/proc/fs/nfsd'
/** insecure, no_subtree_check, fsid: the bits of an export that the kernel is told. */
const EXPORT_FLAGS = 0x2 | 0x400 | 0x2000

const place = mkdtempSync(join(tmpdir(), 'nfs-'))
const [served, mounted] = [join(place, 'served'), join(place, 'mounted')]

/** What rpc.mountd would answer when the kernel asks who may have what. */
function answerQuestions(): void {
  const expiry = Math.floor(Date.now() / 1000) + 3600
  const tell = (cache: string, line: string): void =>
    writeFileSync(`/proc/net/rpc/${cache}/channel`, `${line}\n`)
  tell('auth.unix.ip', `nfsd 127.0.0.1 ${expiry} here`)
  tell('nfsd.export', `here ${served} ${expiry} ${EXPORT_FLAGS} 65534 65534 0`)
  tell('nfsd.fh', `here 1 \\x00000000 ${expiry} ${served}`)
}

/** The kernel's own server, without its programs: one thread, version 4 only, on the loopback. */
function serve(): void {
  run('modprobe', '-a', 'nfsd', 'nfsv4')
  if (!existsSync(`${NFSD}/threads`)) run('mount', '-t', 'nfsd', 'nfsd', NFSD)
  writeFileSync(`${NFSD}/versions`, '-2 -3 +4 +4.1 +4.2\n')
  // A new server waits so long for clients of the one before it.
  for (const time of ['nfsv4leasetime', 'nfsv4gracetime']) writeFileSync(`${NFSD}/${time}`, '10\n')
  writeFileSync(`${NFSD}/portlist`, 'tcp 2049\n')
  writeFileSync(`${NFSD}/threads`, '1\n')
  answerQuestions()
}

const puzzlectl = (args: string[], environment: Record<string, string> = {}) =>
  spawnSync(process.execPath, [program, ...args], {
    cwd: place,
    encoding: 'utf8',
    env: { ...process.env, ...environment },
  })

describe('a state directory on NFS', () => {
  beforeAll(() => {
    for (const folder of [served, mounted]) mkdirSync(folder)
    serve()
    const options = 'addr=127.0.0.1,clientaddr=127.0.0.1,vers=4.2,soft,timeo=100'
    run('mount', '-i', '-t', 'nfs4', '-o', options, '127.0.0.1:/', mounted)
    // The control: it is the server's directory, and it can be written.
    writeFileSync(join(mounted, 'through'), 'the network')
    expect(readdirSync(served)).toEqual(['through'])
  })
  afterAll(() => {
    spawnSync('umount', ['--force', mounted])
    writeFileSync(`${NFSD}/threads`, '0\n')
    rmSync(place, { recursive: true })
  })

  it('is refused by doctor with its reason, also where lost states are allowed', () => {
    for (const environment of [{}, { PUZZLED_ALLOW_VOLATILE_STATE: '1' }]) {
      const done = puzzlectl(['doctor', '--json', '--state-dir', join(mounted, 'state')], environment)
      expect({ status: done.status, ...JSON.parse(done.stdout) }).toMatchObject({
        status: 78,
        ready: false,
        state: {
          filesystem: 'nfs',
          problem: { code: 'state-unsuitable', message: expect.stringContaining('is on the network') },
        },
      })
    }
  })

  it('is refused by run before anything is made', () => {
    const done = puzzlectl(['run', '--state-dir', join(mounted, 'state'), '--', 'true'])
    expect({ status: done.status, said: done.stderr }).toEqual({
      status: 78,
      said: expect.stringContaining('on nfs, which is on the network'),
    })
    expect(readdirSync(served)).toEqual(['through'])
  })

  it('is refused by the daemon, which does not begin to serve', () => {
    const config = join(place, 'puzzled.yaml')
    writeFileSync(config, `state_dir: ${join(mounted, 'state')}\n`)
    const daemon = fileURLToPath(new URL('../../../dist/puzzled.js', import.meta.url))
    const done = spawnSync(process.execPath, [daemon, '--config', config], { encoding: 'utf8' })
    expect({ status: done.status, said: done.stderr }).toEqual({
      status: 78,
      said: expect.stringContaining('on nfs, which is on the network'),
    })
    expect(readdirSync(served)).toEqual(['through'])
  })

  it('on the disk that is served there is nothing to refuse', () => {
    const done = puzzlectl(['doctor', '--json', '--state-dir', join(place, 'state')])
    expect(JSON.parse(done.stdout)).toMatchObject({ state: { filesystem: 'xfs', problem: null } })
  })
})
