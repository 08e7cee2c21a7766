import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { beforeAll, describe, expect } from 'vitest'
import { loadPublicKey } from '../../daemon/audit/signer.ts'
import { verifyLog } from '../../daemon/audit/verify.ts'
import type { Engine } from '../../daemon/contract/engine.ts'
import { openEngine } from '../../daemon/embedded.ts'
import { defaultConfig } from '../../daemon/lib/config.ts'
import { UndoStack } from '../../daemon/lib/undo.ts'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { needs, root } from '../tier/needs.ts'
import { DEVELOPER, runScript, warmUp } from './branch.fixture.ts'

const check = needs(root)
beforeAll(() => (root === undefined ? warmUp(new Launcher()) : undefined))

/** A store whose audit log lies on a disk of its own that can be filled up. */
async function withSmallLog(
  work: (engine: Engine, base: string, audit: string) => Promise<void>,
): Promise<void> {
  const undo = new UndoStack()
  try {
    const room = mkdtempSync(join(tmpdir(), 'audit-full-'))
    undo.push('remove the room', () => rmSync(room, { recursive: true }))
    chmodSync(room, 0o755)
    const [base, state] = [join(room, 'base'), join(room, 'state')]
    mkdirSync(base)
    writeFileSync(join(base, 'kept'), 'as it was\n')
    for (const path of [base, join(base, 'kept')]) chownSync(path, DEVELOPER.uid, DEVELOPER.gid)
    const audit = join(state, 'audit')
    mkdirSync(audit, { recursive: true, mode: 0o700 })
    chmodSync(state, 0o700)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k,mode=700', 'none', audit])
    undo.push('unmount the log', () => void execFileSync('umount', [audit]))
    const root = { uid: 0, gid: 0, groups: [0], name: 'root' }
    const { engine, release } = await openEngine({ ...defaultConfig(), state_dir: state }, root, true)
    undo.push('close the engine', release)
    undo.push('end what runs', () => endAll(engine))
    await work(engine, base, audit)
  } finally {
    await undo.unwind()
  }
}

async function endAll(engine: Awaited<ReturnType<typeof openEngine>>['engine']): Promise<void> {
  for (const id of engine.running()) await engine.discard(id).catch(() => undefined)
}

function fill(directory: string): void {
  try {
    writeFileSync(join(directory, 'filler'), Buffer.alloc(1 << 20))
  } catch (error) {
    expect(error).toMatchObject({ code: 'ENOSPC' })
  }
}

const SOON = { timeout: 30_000, interval: 300 }

const codeOf = (error: unknown): unknown => (error as { code?: unknown }).code

/** The log's last block has room after the disk is full: records go on until it has none. */
async function useLastPage(engine: Engine, id: string): Promise<void> {
  for (let most = 200; most > 0; most--)
    try {
      await engine.signal(id, 'WINCH')
    } catch (error) {
      expect(error).toMatchObject({ code: 'audit-failed' })
      return
    }
  throw new Error('The disk never got full')
}

describe('an audit log that cannot be written', () => {
  check(
    'stops commits and new agents until there is room; what runs reads on, and all can be looked at',
    async () => {
      await withSmallLog(async (engine, base, audit) => {
        const done = await runScript(engine, base, 'echo changed > kept')
        done.input?.end()
        await done.exited
        const { branch } = await engine.finish(done.id)
        const running = await runScript(engine, base, 'read -r line; cat kept; echo "got $line"')
        fill(audit)
        await useLastPage(engine, running.id)
        // The commit is the first that must be written before it happens.
        await expect(engine.commit(branch)).rejects.toMatchObject({ code: 'audit-failed' })
        expect(readFileSync(join(base, 'kept'), 'utf8')).toBe('as it was\n')
        running.input?.end('go on\n')
        const [output] = await Promise.all([
          running.output === undefined ? '' : text(running.output),
          running.exited.catch(() => undefined),
        ])
        expect(output).toBe('as it was\ngot go on\n')
        expect((await engine.list()).length).toBe(2)
        expect((await engine.show(branch)).id).toBe(branch)
        expect((await engine.changes(branch)).changes.length).toBeGreaterThan(0)
        await expect(runScript(engine, base, 'true')).rejects.toMatchObject({ code: 'audit-failed' })
        expect(readFileSync(join(base, 'kept'), 'utf8')).toBe('as it was\n')
        // What is in the log is whole; at most its last line is torn.
        expect((await verifyLog(audit, await loadPublicKey(audit))).bad).toBeNull()
        // With room again it goes on without anybody's doing, and what was refused is said.
        rmSync(join(audit, 'filler'))
        await expect
          .poll(() => engine.commit(branch).then(({ state }) => state, codeOf), SOON)
          .toBe('committed')
        expect(readFileSync(join(base, 'kept'), 'utf8')).toBe('changed\n')
        const next = await runScript(engine, base, 'cat kept')
        next.input?.end()
        expect(next.output === undefined ? '' : await text(next.output)).toBe('changed\n')
        await next.exited
        const log = readFileSync(join(audit, '00000001.jsonl'), 'utf8')
        expect(log).toMatch(/"kind":"log-reopened","branch":"","facts":\{"refused":[1-9]\d*,"cause":"ENOSPC/)
        expect((await verifyLog(audit, await loadPublicKey(audit))).bad).toBeNull()
      })
    },
  )
})
