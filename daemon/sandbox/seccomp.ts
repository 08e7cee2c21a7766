import { compileFilter } from '../kernel/seccomp.ts'
import type { FilterSource } from '../kernel/seccomp-filter.ts'
import { COMPILED_X64 } from './seccomp-compiled.ts'
import type { SeccompFilter } from './seccomp-plan.ts'
import {
  type Architecture,
  execNotifySource,
  type SeccompOptions,
  seccompSources,
  syscallTable,
} from './seccomp-rules.ts'
import { workerSource } from './worker-calls.ts'

const ready = new Map<string, Uint8Array>()
const filters = new Map<string, readonly SeccompFilter[]>()

/**
 * The filters of a profile, in the order in which they are installed. x86-64 finds them compiled; elsewhere libseccomp
 * compiles each once per process (3 ms). Throws `library-missing` where it is needed and absent.
 */
export function seccompFilters(options: SeccompOptions): readonly SeccompFilter[] {
  const key = JSON.stringify(options)
  const known = filters.get(key)
  if (known !== undefined) return known
  const made = seccompSources(options).map((source) => ({
    name: source.name,
    bpf: bytesOf(source, options.architecture),
    ...(source.logged === true ? { logged: true } : {}),
  }))
  filters.set(key, made)
  return made
}

/** Installed before the others where the profile limits `exec`: the listener is asked by what comes after it. */
export function execNotifyFilter(architecture: Architecture): SeccompFilter {
  const source = execNotifySource(architecture)
  return { name: source.name, bpf: bytesOf(source, architecture), listener: true }
}

/** For a process of our own that reads what agents wrote. */
export const workerFilter = (architecture: Architecture): Uint8Array =>
  bytesOf(workerSource(syscallTable(architecture)), architecture)

function bytesOf(source: FilterSource, architecture: Architecture): Uint8Array {
  const key = `${architecture} ${source.name}`
  const known = ready.get(key)
  if (known !== undefined) return known
  const compiled = architecture === 'x64' ? COMPILED_X64[source.name] : undefined
  const bytes = compiled === undefined ? compileFilter(source) : Buffer.from(compiled, 'base64')
  ready.set(key, bytes)
  return bytes
}
