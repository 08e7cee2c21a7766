import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
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
  /** What was told about work while it lasted. */
  told: (readonly [done: number, total: number | null])[]
  close(): Promise<void>
}

const ROOT = { uid: 0, gid: 0, groups: [0], name: 'root' }
const NUMBERS = Array.from({ length: 30 }, (_, index) => `${index + 1}\n`).join('')
const printed = (stream: NodeJS.ReadableStream | undefined): Promise<string> =>
  textOf(stream ?? Readable.from(['no stream']))
const codeOfError = (error: unknown): string => (error instanceof PuzzledError ? error.code : String(error))
const codeOf = (work: Promise<unknown>): Promise<string> => work.then(() => 'no error', codeOfError)

/** All are begun before the first is waited for, so that none fails unheard. */
const codesOf = async (work: readonly Promise<unknown>[]): Promise<string[]> => [
  ...new Set(await Promise.all(work.map(codeOf))),
]

/** Every method there is: one more, or one less, in the interface does not compile. */
const METHODS: Readonly<Record<keyof Engine, true>> = {
  ...{ create: true, run: true, finish: true, exec: true, attach: true, review: true, commit: true },
  ...{ approve: true, reject: true, discard: true, revert: true, rebase: true, pick: true, signal: true },
  ...{ freeze: true, thaw: true, extend: true, queue: true, queueAct: true, queueBody: true },
  ...{ queueEdit: true, netTest: true, recentEvents: true, events: true, features: true, collect: true },
  ...{ list: true, show: true, changes: true, content: true, output: true, usage: true },
  ...{ denials: true, close: true },
}

/** The same engine, noting which of its methods are called. */
const noted = (engine: Engine, called: Set<string>): Engine =>
  new Proxy(engine, {
    get: (target, name: string) => {
      const member: unknown = Reflect.get(target, name, target)
      if (typeof member !== 'function') return member
      return (...given: unknown[]): unknown => {
        called.add(name)
        return Reflect.apply(member, target, given)
      }
    },
  })

/** What every implementation of `Engine` does, whoever calls it and from wherever. */
export function engineSuite(name: string, it: typeof vitestIt, open: () => Promise<EngineGround>): void {
  let ground: EngineGround
  let engine: Engine
  const called = new Set<string>()
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
      engine = noted(ground.engine, called)
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

    it('what a running branch uses and waits for can be asked, and of one that rests there is nothing', async () => {
      const script = 'sleep 600 & i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; sleep 600'
      const { id } = await engine.run(request(script, { budgets: { wall: 500, pids: 100 } }))
      await expect.poll(async () => (await engine.usage(id)).budgets.cpu?.used).toBeGreaterThan(0.01)
      const { budgets, pressure } = await engine.usage(id)
      expect(budgets.wall).toEqual({ used: expect.any(Number), limit: 500 })
      expect(budgets.wall?.used).toBeGreaterThan(0)
      // init, the shell and its two sleeps, or one of them not begun yet.
      expect(budgets.pids?.limit).toBe(100)
      expect([3, 4]).toContain(budgets.pids?.used)
      expect(budgets.memory?.used).toBeGreaterThan(100_000)
      const told = existsSync('/proc/pressure/cpu')
      expect(Object.keys(pressure)).toEqual(told ? ['cpu', 'memory', 'io'] : [])
      for (const share of Object.values(pressure)) expect(share.some10).toBeGreaterThanOrEqual(share.full10)
      await engine.signal(id, 'KILL')
      await engine.finish(id)
      const { branch } = await held('echo a > a')
      expect(await engine.usage(branch)).toEqual({ budgets: {}, pressure: {} })
      expect(await codeOf(engine.usage('nothing'))).toBe('branch-unknown')
    })

    it('more readers of an agent come and go, and what one of them types arrives', async () => {
      const script = 'echo ready; read -r line; echo "got $line"; exit 4'
      const { id } = await engine.run(request(script, { afterwards: 'hold' }))
      const gone = await engine.attach(id)
      expect(gone.terminal).toBe(false)
      gone.detach()
      const reader = await engine.attach(id)
      let shown = ''
      reader.output?.on('data', (part: Buffer) => {
        shown += part.toString()
      })
      await expect.poll(() => shown).toBe('ready\n')
      reader.input?.write('hello\n')
      expect(await reader.exited).toMatchObject({ code: 4 })
      await expect.poll(() => shown).toBe('ready\ngot hello\n')
      await engine.finish(id)
      expect(await codesOf([engine.attach(id), engine.attach('nothing')])).toEqual(['branch-unknown'])
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

    it('pieces of a file become a branch of their own, with its own digest', async () => {
      writeFileSync(path('f'), NUMBERS)
      const { branch, digest } = await held("sed -i 's/^2$/two/; s/^29$/thirty/' f; echo a > a")
      const part = { base: 0, path: Buffer.from('f'), hunks: [0], of: 2 }
      const asked = { digest: digest ?? '', selection: { only: ['f'], except: [] }, parts: [part] }
      const stale = { ...asked, digest: 'f'.repeat(64) }
      expect(await codeOf(engine.pick(branch, stale))).toBe('changed-since-review')
      const other = { ...asked, parts: [{ ...part, of: 3 }] }
      expect(await codeOf(engine.pick(branch, other))).not.toBe('no error')
      const picked = await engine.pick(branch, asked)
      expect(picked).toMatchObject({ state: 'held', totals: { files: 1, modifications: 1 } })
      expect([picked.branch === branch, picked.digest === digest]).toEqual([false, false])
      expect((await engine.approve(picked.branch, { ...approval, digest: picked.digest })).state).toBe(
        'committed',
      )
      expect(text('f')).toBe(NUMBERS.replace('\n2\n', '\ntwo\n'))
      expect((await engine.show(branch)).state).toBe('held')
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

    it('a request that waits is read, written and dropped; what the rules say is told', async () => {
      const issues = 'https://api.github.com/repos/a/b/issues'
      const { branch, digest, requests } = await held(
        `curl -sS -m 60 -o answer -d '{"title":"one"}' ${issues}; getent hosts nowhere.invalid; :`,
      )
      expect(requests).toBe(1)
      const [{ id, method, url } = { id: '', method: '', url: '' }] = await engine.queue(branch)
      expect([method, url]).toEqual(['POST', issues])
      const { bytes, size } = await engine.queueBody(branch, id, 5)
      expect([Buffer.from(bytes).toString(), size]).toEqual(['{"tit', 15])
      const edited = await engine.queueEdit(branch, id, { body: Buffer.from('{}'), method: 'PUT' }, 'less')
      expect([edited.state, edited.digest === digest]).toEqual(['held', false])
      expect(await engine.queue(branch)).toMatchObject([{ id, method: 'PUT', body: '{}', bytes: 2 }])
      const unknown = 'r23456789bcd'
      const strays = [
        engine.queueBody(branch, unknown, 5),
        engine.queueEdit(branch, unknown, { method: 'PUT' }, ''),
        engine.queueAct(branch, unknown, 'drop', ''),
      ]
      expect(await codesOf(strays)).toEqual(['request-unknown'])
      expect(await engine.netTest(branch, 'POST', issues)).toMatchObject({ class: 'queue' })
      expect(await engine.netTest(branch, 'GET', 'https://nowhere.invalid/')).toMatchObject({ class: 'deny' })
      expect(await engine.netTest(branch, 'GET', 'no url')).toMatchObject({ class: 'deny' })
      expect(await engine.denials(branch)).toContainEqual(
        expect.objectContaining({ layer: 'dns', subject: 'nowhere.invalid' }),
      )
      await engine.queueAct(branch, id, 'drop', 'not this one')
      expect((await engine.review(branch)).requests).toBe(0)
    })

    it('how far long work is, is told: of how many where that can be known', async () => {
      const { branch } = await held('seq 1500 | xargs touch')
      ground.told.length = 0
      // The directory itself is one more: it has another time.
      expect((await engine.changes(branch)).changes.length).toBeGreaterThanOrEqual(1500)
      expect(ground.told).toContainEqual([1000, null])
      ground.told.length = 0
      expect(await engine.approve(branch, approval)).toMatchObject({ state: 'committed' })
      const landing = ground.told.filter(([, total]) => total !== null)
      expect(landing[0]).toEqual([1, 1500])
      expect(landing.map(([done]) => done)).toEqual(landing.map(([done]) => done).sort((a, b) => a - b))
    })

    it('features and collect', async () => {
      const { branch } = await held('echo a > a')
      expect([await engine.queue(branch), await engine.denials(branch)]).toEqual([[], []])
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
      const kept = await engine.recentEvents({ branch })
      await expect.poll(() => seen.filter((event) => event.branch === branch)).toEqual(kept)
      stop.abort()
      await following
      expect(await engine.recentEvents({ branch: 'nothing' })).toEqual([])
    })

    it('every method of the interface was called here', async () => {
      await engine.close()
      expect([...called].sort()).toEqual(Object.keys(METHODS).sort())
    })
  })
}
