// Compiles bpf/*.bpf.c with clang into bpf/prebuilt/<arch>/*.o and writes SHA256SUMS. --check builds into a temporary
// folder and fails when a byte differs from what is committed; with another compiler it says that nothing was verified.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const source = fileURLToPath(new URL('../bpf/', import.meta.url))
const committed = join(source, 'prebuilt')
const TARGETS = { x64: '-D__TARGET_ARCH_x86', arm64: '-D__TARGET_ARCH_arm64' }
const FLAGS = [
  '-target',
  'bpf',
  '-O2',
  '-g',
  '-Wall',
  '-Wextra',
  '-Werror',
  '-fdebug-compilation-dir=.',
  '-c',
]

const programs = readdirSync(source).filter((name) => name.endsWith('.bpf.c'))
const objects = Object.keys(TARGETS).flatMap((arch) =>
  programs.map((file) => ({ arch, file, object: `${arch}/${file.replace(/\.bpf\.c$/, '.o')}` })),
)
const version = () =>
  `# ${spawnSync('clang', ['--version'], { encoding: 'utf8' }).stdout?.split('\n')[0] ?? 'no clang'}`

function build(into) {
  const sums = [version()]
  for (const { arch, file, object } of objects) {
    mkdirSync(join(into, arch), { recursive: true })
    const args = [...FLAGS, TARGETS[arch], '-o', join(into, object), file]
    const run = spawnSync('clang', args, { cwd: source, encoding: 'utf8' })
    if (run.status !== 0) throw new Error(`clang ${file}: ${run.error?.message ?? run.stderr}`)
    sums.push(
      `${createHash('sha256')
        .update(readFileSync(join(into, object)))
        .digest('hex')}  ${object}`,
    )
  }
  const text = `${sums.join('\n')}\n`
  writeFileSync(join(into, 'SHA256SUMS'), text)
  return text
}

function check() {
  const expected = readFileSync(join(committed, 'SHA256SUMS'), 'utf8').split('\n')[0]
  if (expected !== version()) {
    console.log(`not verified here: built with\n  ${expected}\nand here is\n  ${version()}`)
    console.log('0 passed, 0 failed, 1 skipped')
    return
  }
  const into = mkdtempSync(join(tmpdir(), 'puzzled-bpf-'))
  try {
    build(into)
    const differing = objects.filter(
      ({ object }) => !readFileSync(join(into, object)).equals(readFileSync(join(committed, object))),
    )
    for (const { object } of differing) console.error(`bpf/prebuilt/${object} is not what its source builds`)
    if (differing.length === 0) console.log('bpf: the prebuilt objects are what their sources build')
    else process.exitCode = 1
  } finally {
    rmSync(into, { recursive: true, force: true })
  }
}

if (process.argv.includes('--check')) check()
else process.stdout.write(build(committed))
