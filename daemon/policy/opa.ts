import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { errnoOf, PuzzledError } from '../lib/errors.ts'

/** The `opa` compiler, for people who write policies. puzzled itself never needs it. */

const HINT =
  'puzzled uses `opa` only to build and test policies. Install it from openpolicyagent.org, or with Go: go install github.com/open-policy-agent/opa@latest; then put it in PATH or name it in $OPA.'

interface Ran {
  status: number
  output: string
}

function run(args: readonly string[]): Promise<Ran> {
  const program = process.env.OPA ?? 'opa'
  return new Promise((resolve, reject) => {
    execFile(
      program,
      [...args],
      { maxBuffer: 16 * 1024 * 1024, timeout: 120_000 },
      (error, stdout, stderr) => {
        if (errnoOf(error) === 'ENOENT')
          reject(
            new PuzzledError('library-missing', `The program "${program}" is not installed`, { hint: HINT }),
          )
        else resolve({ status: error === null ? 0 : 1, output: stdout + stderr })
      },
    )
  })
}

/** Runs the tests of Rego files and directories; the output is opa's own. */
export const testRego = (paths: readonly string[]): Promise<Ran> => run(['test', '--format=pretty', ...paths])

/** Compiles Rego to one WebAssembly module with this entry point. */
export async function compileRego(paths: readonly string[], entrypoint: string): Promise<Buffer> {
  const directory = await mkdtemp(join(tmpdir(), 'puzzled-policy-'))
  try {
    const bundle = join(directory, 'bundle.tar.gz')
    const { status, output } = await run(['build', '-t', 'wasm', '-e', entrypoint, '-o', bundle, ...paths])
    if (status !== 0)
      throw new PuzzledError('policy-invalid', `opa could not build the policy: ${output.trim()}`)
    return memberOf(gunzipSync(await readFile(bundle)), 'policy.wasm')
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

const BLOCK = 512

/** One regular file out of a tar archive: what opa writes, and nothing more general. */
export function memberOf(archive: Buffer, name: string): Buffer {
  const text = (at: number, length: number): string =>
    archive.toString('latin1', at, at + length).replace(/\0.*$/s, '')
  for (let at = 0; at + BLOCK <= archive.byteLength && archive[at] !== 0; ) {
    const size = Number.parseInt(text(at + 124, 12).trim(), 8)
    if (!Number.isSafeInteger(size) || size < 0) break
    const start = at + BLOCK
    if (text(at, 100).replace(/^\.?\//, '') === name) return archive.subarray(start, start + size)
    at = start + Math.ceil(size / BLOCK) * BLOCK
  }
  throw new PuzzledError('policy-invalid', `The bundle of opa has no "${name}"`)
}
