import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, describe, expect } from 'vitest'
import { resolveBases } from '../../daemon/branch/overlay-bases.ts'
import { run, type TestBranch } from '../root/branch.fixture.ts'
import { needs, program, root } from '../tier/needs.ts'
import { attack, attackFolder, outside, parseReport } from './attack.ts'
import { branchFor, commandIn, inBranch, launcher } from './harness.ts'

const check = needs(root, program('gcc'))
const mounted: string[] = []
const folders: string[] = []
afterEach(() => {
  for (const path of mounted.splice(0).reverse()) execFileSync('umount', [path])
  for (const path of folders.splice(0)) rmSync(path, { recursive: true })
})

function mount(...args: string[]): void {
  execFileSync('mount', args)
  mounted.push(args.at(-1) ?? '')
}

interface Shown {
  /** Names the network of our parent, the host's, as `ip netns` makes them. */
  readonly network: string
  /** The host's processes, as in a root that somebody works in with chroot. */
  readonly processes: string
}

/** A namespace and the processes of the host, at two names below a directory. */
function showHost(directory: string): Shown {
  const [network, processes] = [join(directory, 'network'), join(directory, 'processes')]
  writeFileSync(network, '')
  mkdirSync(processes)
  mount('--bind', `/proc/${process.ppid}/ns/net`, network)
  mount('--bind', '/proc', processes)
  return { network, processes }
}

function folder(): string {
  const path = mkdtempSync(join(attackFolder(), 'mounted-'))
  chmodSync(path, 0o755)
  folders.push(path)
  return path
}

/** As a fork sees it: with what is mounted below its base. */
function forked(branch: TestBranch): TestBranch {
  const store = join(dirname(branch.base), 'store')
  const bases = resolveBases([branch.base], store, branch.record.requester)
  return { ...branch, record: { ...branch.record, bases } }
}

const names = { 'open-name-1': 'OK', 'is-namespace-1': 'OK', 'join-name-1': 'OK' }
const list = (path: string): string[] => ['sh', '-c', `ls -A ${path} 2>&1`]

describe('S8 namespaces and processes of the host that are mounted where an agent looks', () => {
  check('control: outside, they are there, and joined', () => {
    const { network, processes } = showHost(folder())
    const report = parseReport(outside([attack('namespaces'), String(process.ppid), network]))
    expect(report).toMatchObject(names)
    expect(readdirSync(processes)).toContain(String(process.pid))
  })

  check('below a base: an empty file and an empty directory, which are the base’s', async () => {
    const made = branchFor()
    const { network, processes } = showHost(made.base)
    const branch = forked(made)
    copyFileSync(attack('namespaces'), join(branch.base, 'namespaces'))
    const { output } = await run(launcher, branch, ['./namespaces', '1', network])
    const refused = { 'open-name-1': 'OK', 'is-namespace-1': 'ENOTTY', 'join-name-1': 'EPERM' }
    expect(parseReport(output)).toMatchObject(refused)
    expect((await run(launcher, branch, list(processes))).output).toBe('')
    expect(branch.record.bases[0]?.nested.map(({ handling }) => handling)).toEqual(['hidden', 'hidden'])
  })

  check('below a directory that a profile shows: neither can be opened', async () => {
    const path = folder()
    const { network, processes } = showHost(path)
    const branch = branchFor({ profile: { mounts: [{ path, mode: 'ro', optional: false, why: 'test' }] } })
    const { report } = await inBranch('namespaces', ['1', network], { reuse: branch })
    expect(report).toMatchObject({
      'open-name-1': 'EACCES',
      'is-namespace-1': 'EBADF',
      'join-name-1': 'EACCES',
    })
    expect((await commandIn(branch, list(processes))).output).toContain('Permission denied')
    expect((await commandIn(branch, list(path))).output).toBe('network\nprocesses\n')
  })

  check('named by a profile itself: no agent is started', async () => {
    const { network, processes } = showHost(folder())
    for (const path of [network, processes, join(processes, '1'), join(processes, 'sys')]) {
      const branch = branchFor({ profile: { mounts: [{ path, mode: 'ro', optional: false, why: 'test' }] } })
      await expect(commandIn(branch, ['true'])).rejects.toMatchObject({
        code: 'profile-invalid',
        message: expect.stringContaining(`mounts "${path}", which is the kernel's own filesystem`),
      })
    }
  })

  check(
    'a file that is mounted below a base is seen and cannot be written, a socket is not seen',
    async () => {
      const made = branchFor()
      const [file, socket] = [join(made.base, 'file'), join(made.base, 'socket')]
      const service = join(folder(), 'service')
      for (const path of [file, socket]) writeFileSync(path, '')
      execFileSync('python3', [
        '-c',
        `import socket; socket.socket(socket.AF_UNIX).bind(${JSON.stringify(service)})`,
      ])
      mount('--bind', '/etc/hostname', file)
      mount('--bind', service, socket)
      const script = `cat ${file}; echo x > ${file}; test -f ${socket} && echo a file`
      const { output, errors } = await commandIn(forked(made), ['sh', '-c', script])
      expect(output).toBe(`${execFileSync('cat', ['/etc/hostname'], { encoding: 'utf8' })}a file\n`)
      expect(errors).toContain('Read-only file system')
    },
  )
})
