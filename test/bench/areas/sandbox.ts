import { closeSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SpawnOp } from '../../../daemon/contract/spawn.ts'
import { spawn } from '../../../daemon/kernel/clone.ts'
import { waitPidfd } from '../../../daemon/kernel/pidfd.ts'
import { Launcher } from '../../../daemon/sandbox/launch.ts'
import { makeBranch, requestOf } from '../../root/branch.fixture.ts'
import type { BenchArea, Notes } from '../harness.ts'
import { findPeer } from '../peers.ts'
import { working } from '../processes.ts'

const quiet = { kind: 'inherit', fds: [0, 1, 2] } as const
const text = (value: string): Buffer => Buffer.from(`${value}\0`)

/** Started by the trampoline without namespaces, so that the program is measured and not how Node starts it. */
async function runToEnd(argv: readonly string[]): Promise<void> {
  const environment = [text(`PATH=${process.env.PATH}`), text('HOME=/root')]
  const op: SpawnOp = {
    name: argv.join(' '),
    call: 'execve',
    args: [text(argv[0] ?? ''), { vector: argv.map(text) }, { vector: environment }],
    expect: 'ok',
  }
  const result = await spawn({ namespaces: [], ops: [op] })
  if (!result.ok) throw new Error(`${result.op.name}: ${result.errnoName}`)
  for (;;) {
    const end = waitPidfd(result.pidfd)
    if (end === undefined) {
      await new Promise((resolve) => setImmediate(resolve))
      continue
    }
    closeSync(result.pidfd)
    if (end.exitCode !== 0) throw new Error(`${argv.join(' ')} ended with ${end.exitCode ?? end.signal}`)
    return
  }
}

/** An OCI bundle for `crun run` and `runc run`: the host's system read-only, as in the other candidates. */
function makeBundle(): string {
  const bundle = mkdtempSync(join(tmpdir(), 'bundle-'))
  for (const name of ['usr', 'proc', 'dev', 'tmp'])
    mkdirSync(join(bundle, 'rootfs', name), { recursive: true })
  const bind = (path: string) => ({ destination: path, source: path, type: 'bind', options: ['rbind', 'ro'] })
  const links = ['bin', 'lib', 'lib64', 'sbin'].map((name) => bind(`/${name}`))
  const config = {
    ociVersion: '1.0.2',
    process: {
      args: ['true'],
      cwd: '/',
      env: ['PATH=/usr/bin'],
      user: { uid: 0, gid: 0 },
      noNewPrivileges: true,
    },
    root: { path: 'rootfs' },
    mounts: [bind('/usr'), ...links, { destination: '/proc', type: 'proc', source: 'proc' }],
    linux: { namespaces: ['pid', 'network', 'ipc', 'uts', 'mount'].map((type) => ({ type })) },
  }
  writeFileSync(join(bundle, 'config.json'), JSON.stringify(config))
  return bundle
}

/** What is installed; the others are named, with what would bring them. */
function rivals(notes: Notes): Record<string, () => Promise<void>> {
  const found: Record<string, () => Promise<void>> = {}
  const add = (name: string, program: string, args: readonly string[]): void => {
    const path = findPeer(program, notes)
    if (path !== undefined) found[name] = () => runToEnd([path, ...args])
  }
  const bubblewrap = '--unshare-all --die-with-parent --ro-bind / / --proc /proc --dev /dev --tmpfs /tmp true'
  add('bwrap --unshare-all', 'bwrap', bubblewrap.split(' '))
  add('firejail', 'firejail', ['--quiet', '--noprofile', '--net=none', 'true'])
  const bundle = makeBundle()
  process.once('exit', () => rmSync(bundle, { recursive: true, force: true }))
  for (const runtime of ['crun', 'runc'])
    add(runtime, runtime, ['run', '--bundle', bundle, `bench-${process.pid}`])
  return found
}

export const area: BenchArea = {
  name: 'start',
  missing: () => (process.geteuid?.() === 0 ? undefined : 'needs root'),
  cases: async (notes) => {
    const launcher = new Launcher()
    const branch = makeBranch()
    process.once('exit', branch.remove)
    const peers = await working(rivals(notes), notes.missing)
    const whole = async (): Promise<void> => {
      const agent = await launcher.start(requestOf(branch, ['true'], { stdio: quiet }))
      const { code } = await agent.exited
      if (code !== 0) throw new Error(`true ended with ${code}`)
    }
    return [
      {
        name: 'the whole run of `true` in a sandbox of its own, until it is reaped',
        baseline: Object.keys(peers)[0] ?? 'puzzled',
        goal: '≤ 1.0 of bwrap',
        rounds: 150,
        warmUp: 15,
        candidates: { puzzled: whole, ...peers },
      },
      startCase(launcher, branch),
    ]
  },
}

/** Until the first program of the agent has been executed. */
function startCase(launcher: Launcher, branch: ReturnType<typeof makeBranch>) {
  let ended: Promise<unknown> = Promise.resolve()
  return {
    name: 'from the request to the first instruction of the agent',
    baseline: 'puzzled',
    own: true as const,
    rounds: 150,
    warmUp: 15,
    // The end of the one before is not part of this start.
    before: { puzzled: async () => void (await ended) },
    candidates: {
      puzzled: async () => {
        const agent = await launcher.start(requestOf(branch, ['true'], { stdio: quiet }))
        ended = agent.exited
      },
    },
  }
}
