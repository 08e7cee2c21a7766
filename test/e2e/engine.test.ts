import { chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll } from 'vitest'
import { BusEngine } from '../../ctl/bus-engine.ts'
import { openEmbedded } from '../../daemon/embedded.ts'
import type { TellProgress } from '../../daemon/lib/progress.ts'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { warmUp } from '../root/branch.fixture.ts'
import { type EngineGround, engineSuite } from '../suites/engine-suite.ts'
import { needs, program, root } from '../tier/needs.ts'
import { privateBus } from './private-bus.ts'

const listener = (): Pick<EngineGround, 'told'> & { tell: TellProgress } => {
  const told: EngineGround['told'] = []
  return { told, tell: (done, total) => void told.push([done, total]) }
}

/** What a process opens once and keeps. */
beforeAll(() => warmUp(new Launcher()))

engineSuite('the engine in this process', needs(root, program('curl')), async () => {
  const folder = mkdtempSync(join(tmpdir(), 'puzzled-engine-'))
  const project = join(folder, 'project')
  mkdirSync(project)
  const requester = { uid: 0, gid: 0, groups: [0], name: 'root' }
  const { told, tell } = listener()
  const engine = await openEmbedded({ stateDir: join(folder, 'state'), requester, tell })
  return {
    engine,
    project,
    told,
    close: async () => {
      await engine.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
})

engineSuite('the daemon on a bus', needs(root, program('curl'), program('dbus-daemon')), async () => {
  const here = await privateBus()
  chownSync(here.project, 0, 0)
  const { told, tell } = listener()
  const engine = await BusEngine.open(await here.connect(), tell)
  if (engine === null) throw new Error('No daemon answers')
  return {
    engine,
    project: here.project,
    told,
    close: async () => {
      await engine.close()
      await here.close()
    },
  }
})
