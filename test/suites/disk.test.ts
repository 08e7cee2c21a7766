import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { KernelDisk } from '../../daemon/branch/kernel-disk.ts'
import { ModelDisk } from '../fakes/model-disk.ts'
import { describeDisk } from './disk-suite.ts'

const made: string[] = []
afterAll(() => {
  for (const path of made) rmSync(path, { recursive: true, force: true })
})

describeDisk('the kernel', () => {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'puzzled-disk-')))
  made.push(path)
  return { disk: new KernelDisk(), path }
})

describeDisk('the model disk', () => ({ disk: new ModelDisk(['top']), path: '/top' }))
