import { chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll } from 'vitest'
import { BusEngine } from '../../ctl/bus-engine.ts'
import { openEmbedded } from '../../daemon/embedded.ts'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { warmUp } from '../root/branch.fixture.ts'
import { engineSuite } from '../suites/engine-suite.ts'
import { needs, program, root } from '../tier/needs.ts'
import { privateBus } from './private-bus.ts'

/** What a process opens once and keeps. */
beforeAll(() => warmUp(new Launcher()))

engineSuite('the engine in this process', needs(root, program('curl')), async () => {
  const folder = mkdtempSync(join(tmpdir(), 'puzzled-engine-'))
  const project = join(folder, 'project')
  mkdirSync(project)
  const requester = { uid: 0, gid: 0, groups: [0], name: 'root' }
  const engine = await openEmbedded({ stateDir: join(folder, 'state'), requester })
  return {
    engine,
    project,
    close: async () => {
      await engine.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
})

engineSuite('the daemon on a bus', needs(root, program('curl'), program('dbus-daemon')), async () => {
  const here = await privateBus()
  chownSync(here.project, 0, 0)
  const engine = await BusEngine.open(await here.connect())
  if (engine === null) throw new Error('No daemon answers')
  return {
    engine,
    project: here.project,
    close: async () => {
      await engine.close()
      await here.close()
    },
  }
})
