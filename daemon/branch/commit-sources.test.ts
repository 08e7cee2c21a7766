import { expect, it } from 'vitest'
import { KernelError } from '../kernel/ffi.ts'
import { KeptSources, LayerSources } from './commit-sources.ts'
import { KernelDisk } from './kernel-disk.ts'

class CountedDisk extends KernelDisk {
  open = 0
  override openRoot(path: string): number {
    const dir = super.openRoot(path)
    this.open++
    return dir
  }
  override close(dir: number): void {
    super.close(dir)
    this.open--
  }
}

it.each([
  ['layers', (disk: CountedDisk) => new LayerSources(disk, [['/usr', '/etc'], ['/nowhere']])],
  ['bases', (disk: CountedDisk) => new KeptSources(disk, [], [disk.openRoot('/var')], ['/usr', '/nowhere'])],
])('%s of which one is gone leave none of the others open', (_, make) => {
  const disk = new CountedDisk()
  expect(() => make(disk)).toThrow(KernelError)
  expect(disk.open).toBe(0)
})
