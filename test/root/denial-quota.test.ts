import { chmodSync, chownSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { beforeAll, expect } from 'vitest'
import { denialsText } from '../../ctl/render/denials.ts'
import { plain } from '../../ctl/render/paint.ts'
import { DENIALS_PATH } from '../../daemon/contract/denial.ts'
import type { PuzzledEvent } from '../../daemon/contract/events.ts'
import { openEngine } from '../../daemon/embedded.ts'
import { defaultConfig } from '../../daemon/lib/config.ts'
import { UndoStack } from '../../daemon/lib/undo.ts'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { needs, root } from '../tier/needs.ts'
import { DEVELOPER, runScript, warmUp } from './branch.fixture.ts'
import { makePlace, projectQuotaMissing } from './filesystems.ts'

const check = needs(projectQuotaMissing())
const MiB = 2 ** 20
beforeAll(() => (root === undefined ? warmUp(new Launcher()) : undefined))

check(
  'what the quota refuses is an event, counted, what people are shown, and what the agent reads',
  async () => {
    const undo = new UndoStack()
    try {
      const [place, base] = [makePlace('xfs', 'prjquota'), makePlace('host')]
      undo.push('remove the places', () => {
        place.remove()
        base.remove()
      })
      const project = join(base.path, 'project')
      mkdirSync(project)
      chmodSync(join(base.path, '..'), 0o755)
      chownSync(project, DEVELOPER.uid, DEVELOPER.gid)
      const config = { ...defaultConfig(), state_dir: join(place.path, 'state') }
      const { engine, metrics, release } = await openEngine(
        config,
        { uid: 0, gid: 0, groups: [0], name: 'root' },
        true,
      )
      undo.push('close the engine', release)
      undo.push('end what runs', async () => {
        for (const id of engine.running()) await engine.discard(id).catch(() => undefined)
      })
      const stop = new AbortController()
      const events: PuzzledEvent[] = []
      const following = (async () => {
        for await (const event of engine.events({ branch: null }, stop.signal)) events.push(event)
      })()
      const fill = 'dd if=/dev/zero of=big bs=1M count=32 2>&1'
      const wait = `until grep -q '"layer":"quota"' ${DENIALS_PATH}; do sleep 0.1; done; cat ${DENIALS_PATH}`
      const session = await runScript(engine, project, `${fill}; ${wait}`, { disk: 8 * MiB })
      session.input?.end()
      session.errors?.resume()
      const output = session.output === undefined ? '' : text(session.output)
      const told = (): PuzzledEvent | undefined =>
        events.find((event) => event.kind === 'denial' && event.layer === 'quota')
      await expect.poll(told, { timeout: 60_000 }).toBeDefined()
      // It stands still until it has more, and then reads why.
      await engine.extend(session.id, 'disk', 64 * MiB)
      const said = await output
      await session.exited
      const denials = await engine.denials(session.id)
      stop.abort()
      await following
      const row = denials.find(({ layer }) => layer === 'quota')
      expect(said).toContain('No space left on device')
      expect(row).toMatchObject({
        ...{ subject: 'the agent', rule: 'quota', message: expect.stringContaining('disk') },
        help: expect.stringMatching(/^puzzlectl budget \w+ KIND=AMOUNT/),
      })
      expect(said).toContain(JSON.stringify(row))
      expect(told()).toEqual({ kind: 'denial', branch: session.id, ...row })
      expect(metrics.text()).toContain('puzzled_denials_total{layer="quota"} 1\n')
      expect(denialsText(denials, plain)).toContain(`blocked  quota quota: the agent: ${row?.message}`)
    } finally {
      await undo.unwind()
    }
  },
)
