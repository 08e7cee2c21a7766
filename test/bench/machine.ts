import { readFileSync } from 'node:fs'
import { cpus, loadavg, release, tmpdir, totalmem } from 'node:os'
import { fstatfs } from '../../daemon/kernel/file-data.ts'
import { openRoot, withFd } from '../../daemon/kernel/paths.ts'
import type { Machine } from './report.ts'

const distribution = (): string => {
  const text = readFileSync('/etc/os-release', 'utf8')
  return /^PRETTY_NAME="(.*)"$/m.exec(text)?.[1] ?? 'unknown'
}

/** Where the benchmarks make their files is what decides about a commit. */
export function machineNow(loadBefore: number): Machine {
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cpus: cpus().length,
    memoryGiB: Math.round(totalmem() / 1024 ** 3),
    kernel: release(),
    distribution: distribution(),
    node: process.version,
    filesystem: withFd(openRoot(tmpdir()), (fd) => fstatfs(fd).type),
    load: [loadBefore, loadavg()[0] ?? 0],
  }
}
