import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { text as textOf } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, type it as vitestIt } from 'vitest'
import type { Engine, Outcome, RunRequest } from '../../daemon/contract/engine.ts'
import type { PuzzledEvent } from '../../daemon/contract/events.ts'
import { PuzzledError } from '../../daemon/lib/errors.ts'

export interface EngineGround {
  engine: Engine
  /** An empty directory to fork. */
  project: string
  close(): Promise<void>
}

const ROOT = { uid: 0, gid: 0, groups: [0], name: 'root' }
const printed = (stream: NodeJS.ReadableStream | undefined): Promise<string> =>
  textOf(stream ?? Readable.from(['no stream']))
const codeOfError = (error: unknown): string => (error instanceof PuzzledError ? error.code : String(error))
const codeOf = (work: Promise<unknown>): Promise<string> => work.then(() => 'no error', codeOfError)

/** All are begun before the first is waited for, so that none fails unheard. */
const codesOf = async (work: readonly Promise<unknown>[]): Promise<string[]> => [
  ...new Set(await Promise.all(work.map(codeOf))),
]

/** What every implementation of `Engine` does, whoever calls it and from wherever. */
export function engineSuite(name: string, it: typeof vitestIt, open: () => Promise<EngineGround>): void {
  let ground: EngineGround
  let engine: Engine
  const path = (file: string): string => join(ground.project, file)
  const text = (file: string): string => readFileSync(path(file), 'utf8')
  const request = (script: string, change: Partial<RunRequest> = {}): RunRequest => ({
    ...{ bases: [ground.project], cwd: ground.project, profile: 'standard', name: null },
    ...{ afterwards: 'gate', command: ['sh', '-c', script], requester: ROOT, budgets: {} },
    ...{ environment: { PATH: process.env.PATH ?? '' }, setEnvironment: {}, stdio: { kind: 'pipes' } },
    ...change,
  })
  const run = async (script: string, change: Partial<RunRequest> = {}): Promise<Outcome> => {
    const { id } = await engine.run(request(script, change))
    return engine.finish(id)
  }
  const held = (script: string): Promise<Outcome> => run(script, { afterwards: 'hold' })
  const start = async (change: Partial<RunRequest> = {}): Promise<string> =>
    (await engine.run(request('exec sleep 600', { afterwards: 'discard', ...change }))).id
  const approval = { by: { ...ROOT, uid: 1, name: 'reviewer' }, digest: null, selection: null, why: 'fine' }

  describe(`${name}:`, () => {
    beforeEach(async () => {
      ground = await open()
      engine = ground.engine
    })
    afterEach(() => ground?.close())

    it('create, list, show and discard', async () => {
      const { id, state } = await engine.create(request('true', { name: 'named' }))
      expect(state).toBe('ready')
      expect(await engine.list()).toMatchObject([{ id, name: 'named', state: 'ready', uid: 0 }])
      expect(await engine.show('named')).toMatchObject({ id, bases: [{ path: ground.project }] })
      expect((await engine.show(id.slice(0, 5))).id).toBe(id)
      expect(await engine.discard(id)).toMatchObject({ state: 'discarded' })
      expect(await codeOf(engine.show(id))).toBe('branch-unknown')
    })

    it('run and finish: what is allowed lands, nothing is nothing, a failure is held', async () => {
      expect(await run('echo a > a.txt')).toMatchObject({
        ...{ state: 'committed', exit: { code: 0 }, totals: { files: 1, additions: 1 } },
        ...{ verdict: { kind: 'allow' }, conflicts: [] },
      })
      expect(text('a.txt')).toBe('a\n')
      expect(await run('exit 3')).toMatchObject({ state: 'discarded', exit: { code: 3 } })
      expect(await run('echo b > b.txt; exit 3')).toMatchObject({ state: 'held', verdict: { kind: 'hold' } })
      expect(await run('echo b > b.txt', { afterwards: 'discard' })).toMatchObject({ state: 'discarded' })
    })

    it('what it prints arrives whole, also when it is over at once, and is kept', async () => {
      const quick = await engine.run(request('echo out; echo err >&2; exit 4', { afterwards: 'hold' }))
      const said = [printed(quick.output), printed(quick.errors)]
      expect(await Promise.all(said)).toEqual(['out\n', 'err\n'])
      expect(await quick.exited).toMatchObject({ code: 4, signal: null, cause: 'exited' })
      const kept = await engine.output(quick.id, 0, 1000)
      expect(kept.entries.map(({ stream }) => stream).sort()).toEqual(['stderr', 'stdout'])
      expect(await engine.output(quick.id, kept.next, 1000)).toMatchObject({ entries: [], ended: true })
      const much = await engine.run(request('head -c 1000000 /dev/zero; echo a > a', { afterwards: 'hold' }))
      expect((await printed(much.output)).length).toBe(1_000_000)
      expect(await engine.finish(much.id)).toMatchObject({ state: 'held', exit: { code: 0 } })
    })

    it('a second command runs in a branch, beside its agent and after it', async () => {
      const id = await start()
      const command = (script: string) => ({
        ...{ command: ['sh', '-c', script], cwd: null, environment: { PATH: process.env.PATH ?? '' } },
        ...{ setEnvironment: {}, stdio: { kind: 'pipes' } as const, timeout: null },
      })
      const beside = await engine.exec(id, command('echo beside; exit 5'))
      expect(await printed(beside.output)).toBe('beside\n')
      expect(await beside.exited).toMatchObject({ code: 5 })
      expect((await engine.show(id)).state).toBe('running')
      expect(await engine.discard(id)).toMatchObject({ state: 'discarded' })
      const { branch } = await held('echo a > a')
      const after = await engine.exec(branch, command('cat a'))
      expect(await printed(after.output)).toBe('a\n')
      expect(await after.exited).toMatchObject({ code: 0 })
    })

    it('hold, look, approve exactly that, and revert', async () => {
      const { branch, state, digest } = await held('echo a > a.txt')
      expect(state).toBe('held')
      const changes = await engine.changes(branch)
      expect(changes).toMatchObject({ digest, changes: [{ kind: 'metadata' }, { kind: 'add', base: 0 }] })
      const { before, after } = await engine.content(branch, 0, Buffer.from('a.txt'), 1)
      expect([before, Buffer.from(after?.bytes ?? []).toString(), after?.size]).toEqual([null, 'a', 2])
      expect(await codeOf(engine.content(branch, 0, Buffer.from('other'), 1))).toBe('usage')
      expect(await codeOf(engine.content(branch, 9, Buffer.from('a.txt'), 1))).toBe('usage')
      const wrong = { ...approval, digest: 'f'.repeat(64) }
      expect(await codeOf(engine.approve(branch, wrong))).toBe('changed-since-review')
      const landed = await engine.approve(branch, { ...approval, digest })
      expect(landed).toMatchObject({ state: 'committed', digest })
      expect(await codeOf(engine.approve(branch, approval))).toBe('wrong-state')
      expect((await engine.revert(landed.commit ?? '')).state).toBe('committed')
      expect(() => text('a.txt')).toThrow(/ENOENT/)
    })

    it('review, a part of it, the rest, and reject', async () => {
      const { branch } = await held('echo a > a; echo b > b')
      expect(await engine.review(branch)).toMatchObject({ state: 'held', totals: { files: 2 } })
      expect(await codeOf(engine.commit(branch, { only: ['nothing'], except: [] }))).toBe('usage')
      const part = await engine.commit(branch, { only: ['a'], except: [] })
      expect([part.state, text('a')]).toEqual(['stopped', 'a\n'])
      expect(await engine.review(branch)).toMatchObject({ totals: { files: 1 } })
      expect(await engine.reject(branch, 'no')).toMatchObject({ state: 'discarded' })
      expect(() => text('b')).toThrow(/ENOENT/)
    })

    it('what the policy denies stays, and no approval lands it', async () => {
      const { branch, state, verdict } = await run('mkdir .ssh; echo key > .ssh/authorized_keys')
      expect([state, verdict?.kind === 'allow']).toEqual(['held', false])
      if (verdict?.kind === 'deny') expect(await codeOf(engine.approve(branch, approval))).toBe('denied')
      expect(() => text('.ssh/authorized_keys')).toThrow(/ENOENT/)
    })

    it('a base that was changed meanwhile is a conflict, and a rebase does it again', async () => {
      writeFileSync(path('f'), 'one\n')
      const { branch } = await held('echo theirs > f')
      rmSync(path('f'))
      writeFileSync(path('f'), 'ours\n')
      const conflict = await engine.commit(branch)
      expect(conflict).toMatchObject({ state: 'held', conflicts: [{ path: expect.stringContaining('f') }] })
      expect(text('f')).toBe('ours\n')
      const none = { ours: [], theirs: [], drop: [] }
      expect((await engine.rebase(branch, none)).conflicts.length).toBe(1)
      const again = await engine.rebase(branch, { ...none, ours: ['f'] })
      expect(again).toMatchObject({ state: 'held', conflicts: [] })
      expect(again.branch).not.toBe(branch)
    })

    it('freeze, thaw, extend, signal: a running branch', async () => {
      const id = await start({ budgets: { wall: 500 } })
      const early = [engine.review(id), engine.commit(id), engine.approve(id, approval)]
      expect(await codesOf(early)).toEqual(['wrong-state'])
      expect(await engine.freeze(id)).toMatchObject({ state: 'frozen' })
      expect(await engine.thaw(id)).toMatchObject({ state: 'running' })
      expect(await engine.extend(id, 'wall', 60)).toMatchObject({ extensions: { wall: 60 } })
      expect((await engine.signal(id, 'KILL')).survivors).toBe(0)
      expect(await engine.finish(id)).toMatchObject({ state: 'discarded', exit: { signal: 'SIGKILL' } })
    })

    it('typed errors: of no branch, of two, of a wrong state, of a bad request', async () => {
      const unknown: readonly Promise<unknown>[] = [
        engine.show('nothing'),
        engine.changes('nothing'),
        engine.review('nothing'),
        engine.commit('nothing'),
        engine.discard('nothing'),
        engine.finish('nothing'),
        engine.freeze('nothing'),
        engine.queue('nothing'),
        engine.revert('nothing'),
        engine.rebase('nothing', { ours: [], theirs: [], drop: [] }),
      ]
      expect(await codesOf(unknown)).toEqual(['branch-unknown'])
      const ids = await Promise.all(Array.from({ length: 28 }, () => engine.create(request('true'))))
      const letters = ids.map(({ id }) => id.slice(0, 1))
      const twice = letters.find((letter, at) => letters.indexOf(letter) !== at) ?? ''
      expect(await codeOf(engine.show(twice))).toBe('branch-ambiguous')
      const [{ id } = { id: '' }] = ids
      const idle = [engine.freeze(id), engine.signal(id, 'TERM'), engine.reject(id, '')]
      expect(await codesOf(idle)).toEqual(['wrong-state'])
      expect(await codeOf(engine.create(request('true', { profile: 'none-such' })))).toBe('profile-invalid')
      const missing = join(ground.project, 'missing')
      expect(await codeOf(engine.create(request('true', { bases: [missing] })))).toBe('base-invalid')
      expect(await codeOf(engine.run(request('', { command: ['no-such-program'] })))).toBe(
        'command-not-found',
      )
    })

    it('queue, features and collect', async () => {
      const { branch } = await held('echo a > a')
      expect(await engine.queue(branch)).toEqual([])
      expect(await codeOf(engine.queueAct(branch, 'r23456789bcd', 'drop', ''))).not.toBe('internal')
      expect((await engine.features()).map(({ name: feature }) => feature)).toContain('overlay')
      await engine.discard(branch)
      expect(await engine.collect()).toMatchObject({ branches: expect.any(Number) })
    })

    it('events come in the order in which things happened', async () => {
      const stop = new AbortController()
      const seen: PuzzledEvent[] = []
      const following = (async () => {
        for await (const event of engine.events({ branch: null }, stop.signal)) seen.push(event)
      })()
      await expect
        .poll(async () => {
          await engine.discard((await engine.create(request('true'))).id)
          return seen.length
        })
        .toBeGreaterThan(0)
      mkdirSync(path('d'))
      const { branch } = await run('echo a > d/a')
      const states = (): string[] =>
        seen.flatMap((event) => (event.kind === 'state' && event.branch === branch ? [event.to] : []))
      await expect.poll(() => states().at(-1)).toBe('committed')
      const order = ['ready', 'running', 'stopped', 'reviewing', 'staging', 'committing', 'committed']
      expect(states()).toEqual(order)
      stop.abort()
      await following
    })
  })
}
