import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  closeSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { beforeAll, describe, expect } from 'vitest'
import { denialsText } from '../../ctl/render/denials.ts'
import { plain } from '../../ctl/render/paint.ts'
import { DENIALS_PATH, type DenialLayer, type DenialRow } from '../../daemon/contract/denial.ts'
import type { Engine } from '../../daemon/contract/engine.ts'
import type { PuzzledEvent } from '../../daemon/contract/events.ts'
import { openEngine } from '../../daemon/embedded.ts'
import { AuditStream, auditEnabled } from '../../daemon/kernel/audit-stream.ts'
import { syscall } from '../../daemon/kernel/ffi.ts'
import { landlockAbi } from '../../daemon/kernel/landlock.ts'
import { CLONE_NEWNET, NR } from '../../daemon/kernel/uapi/index.ts'
import { defaultConfig } from '../../daemon/lib/config.ts'
import { UndoStack } from '../../daemon/lib/undo.ts'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { type Missing, needs, program, root } from '../tier/needs.ts'
import { DEVELOPER, runScript, warmUp } from './branch.fixture.ts'

/** The room has a network of its own, and the kernel's records are heard in the first one only, where our parent is. */
function leaveNetwork(): void {
  const outside = openSync(`/proc/${process.ppid}/ns/net`, 'r')
  try {
    syscall('setns', NR.setns, outside, CLONE_NEWNET)
  } finally {
    closeSync(outside)
  }
}

/** A probe: somebody must be allowed to listen, in the first PID namespace, whose numbers the records have. */
async function listening(): Promise<Missing> {
  try {
    leaveNetwork()
    AuditStream.open().close()
    await auditEnabled()
    return undefined
  } catch (error) {
    return `needs the kernel's audit system: ${error}`
  }
}

/** `AUDIT_SET` of `enabled`, in a machine that is only there for tests. */
const AUDIT_ON = `import socket, struct
status = struct.pack('11I', 1, 1, *[0] * 9)
bus = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9)
bus.send(struct.pack('IHHII', 16 + len(status), 1001, 1, 1, 0) + status)`

async function landlockTells(): Promise<Missing> {
  if (unheard !== undefined) return 'needs the audit system of the kernel'
  if (landlockAbi() < 7) return 'needs Linux 6.15 or newer'
  if (process.env.PUZZLED_VM !== undefined) execFileSync('python3', ['-c', AUDIT_ON])
  return (await auditEnabled()) ? undefined : 'needs audit=1: it is off on this machine'
}

const unheard = root ?? (await listening())
const check = needs(root, unheard, program('unshare'))
const checkLandlock = needs(root, unheard, await landlockTells())

beforeAll(() => (root === undefined ? warmUp(new Launcher()) : undefined))

async function withEngine(work: (engine: Engine, base: (name: string) => string) => Promise<void>) {
  const undo = new UndoStack()
  try {
    const room = mkdtempSync(join(tmpdir(), 'kernel-denials-'))
    undo.push('remove the room', () => rmSync(room, { recursive: true }))
    chmodSync(room, 0o755)
    const config = { ...defaultConfig(), state_dir: join(room, 'state') }
    const { engine, release } = await openEngine(config, { uid: 0, gid: 0, groups: [0], name: 'root' }, true)
    undo.push('close the engine', release)
    undo.push('end what runs', async () => {
      for (const id of engine.running()) await engine.discard(id).catch(() => undefined)
    })
    await work(engine, (name) => {
      const base = join(room, name)
      mkdirSync(base)
      // The program has a name of its own: it is in the record.
      copyFileSync('/usr/bin/unshare', join(base, name))
      chmodSync(join(base, name), 0o755)
      chownSync(base, DEVELOPER.uid, DEVELOPER.gid)
      return base
    })
  } finally {
    await undo.unwind()
  }
}

/** Where a test fails before it waits for this, the end of the engine is no second failure, which nobody could tell apart. */
const endsWithTheTest = (work: Promise<unknown>): void => {
  work.catch(() => undefined)
}

async function denialsOf(
  engine: Engine,
  base: string,
  script: string,
): Promise<[readonly DenialRow[], string]> {
  const session = await runScript(engine, base, `${script}; echo > x`)
  endsWithTheTest(session.exited)
  session.input?.end()
  const [output, errors] = [session.output, session.errors].map((one) => (one === undefined ? '' : text(one)))
  const said = `${await output}${await errors}`
  await session.exited
  const { branch } = await engine.finish(session.id)
  const denials = await engine.denials(branch)
  await engine.discard(branch)
  return [denials, said]
}

/** The first denial of that layer: as an event, as `show` prints it, and as the agent finds it while it runs. */
async function toldEverywhere(
  engine: Engine,
  base: string,
  layer: DenialLayer,
  act: string,
): Promise<{ event: PuzzledEvent | undefined; row: DenialRow | undefined; shown: string }> {
  const stop = new AbortController()
  const events: PuzzledEvent[] = []
  const following = (async () => {
    for await (const event of engine.events({ branch: null }, stop.signal)) events.push(event)
  })()
  endsWithTheTest(following)
  const wait = `until grep -q '"layer":"${layer}"' ${DENIALS_PATH}; do sleep 0.1; done; cat ${DENIALS_PATH}`
  const [denials, said] = await denialsOf(engine, base, `${act}; ${wait}`)
  stop.abort()
  await following
  const row = denials.find((one) => one.layer === layer)
  expect(said).toContain(JSON.stringify(row))
  const event = events.find((one) => one.kind === 'denial' && one.layer === layer)
  return { event, row, shown: denialsText(denials, plain) }
}

describe('what the kernel refused', () => {
  check('by seccomp is told to the branch that tried it, and to no other', async () => {
    await withEngine(async (engine, base) => {
      // Short-lived programs, both at once, the second of them in a flood.
      const [[one, said], [other]] = await Promise.all([
        denialsOf(engine, base('alpha'), './alpha -U true'),
        denialsOf(engine, base('beta'), 'for i in 1 2 3 4 5 6 7 8 9; do ./beta -m true; done'),
      ])
      expect(said).toContain('Operation not permitted')
      expect(one.map(({ layer, subject, rule }) => [layer, subject, rule])).toEqual([
        ['seccomp', 'unshare by alpha', 'seccomp.unshare'],
      ])
      expect(one[0]?.message).toContain('namespace')
      expect(new Set(other.map(({ subject }) => subject))).toEqual(new Set(['unshare by beta']))
      expect(other.length).toBe(3)
    })
  })

  check('to a command that joined is told to its branch', async () => {
    await withEngine(async (engine, base) => {
      const place = base('gamma')
      const session = await runScript(engine, place, 'read -r line; echo > x')
      endsWithTheTest(session.exited)
      const joined = await engine.exec(session.id, {
        ...{ command: ['./gamma', '-U', 'true'], cwd: place, environment: {}, setEnvironment: {} },
        stdio: { kind: 'pipes' },
        timeout: null,
      })
      endsWithTheTest(joined.exited)
      joined.output?.resume()
      joined.errors?.resume()
      await joined.exited
      const told = async () =>
        (await engine.denials(session.id)).map(({ layer, subject }) => [layer, subject])
      await expect.poll(told).toEqual([['seccomp', 'unshare by gamma']])
      session.input?.end('\n')
      session.output?.resume()
      session.errors?.resume()
      await session.exited
    })
  })

  check('does not come from programs that do what they should', async () => {
    await withEngine(async (engine, base) => {
      const work = 'ls -la /etc / > out; python3 -c "import socket, subprocess" ; node -e 0; git init -q r'
      const [denials] = await denialsOf(engine, base('delta'), `${work} 2> err`)
      expect(denials.filter(({ layer }) => layer === 'seccomp')).toEqual([])
    })
  })

  check('by seccomp is an event, what people are shown, and what the agent reads', async () => {
    await withEngine(async (engine, base) => {
      const { event, row, shown } = await toldEverywhere(engine, base('zeta'), 'seccomp', './zeta -U true')
      expect(row).toMatchObject({ layer: 'seccomp', subject: 'unshare by zeta', rule: 'seccomp.unshare' })
      expect(event).toEqual({ kind: 'denial', branch: event?.branch, ...row })
      expect(shown).toContain(`blocked  seccomp seccomp.unshare: unshare by zeta: ${row?.message}`)
    })
  })

  checkLandlock('by Landlock is told as well, with the grant that would help', async () => {
    await withEngine(async (engine, base) => {
      // To whoever asks for a file to be made where there is none, making one is what is refused.
      const act = 'echo x > /proc/self/comm'
      const { event, row, shown } = await toldEverywhere(engine, base('epsilon'), 'landlock', act)
      expect(row).toMatchObject({ rule: expect.stringMatching(/^landlock\.fs\./), help: expect.anything() })
      expect(event).toEqual({ kind: 'denial', branch: event?.branch, ...row })
      expect(shown).toContain(`blocked  landlock ${row?.rule}: ${row?.subject}`)
    })
  })
})
