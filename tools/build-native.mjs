// Compiles daemon/native/*.c for both architectures into daemon/native/prebuilt/<arch>/ and writes SHA256SUMS.
// --check builds into a temporary folder and fails when a byte differs from what is committed. The result depends on
// the compiler: SHA256SUMS names it, and with another one --check says that nothing was verified.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const source = fileURLToPath(new URL('../daemon/native/', import.meta.url))
const COMPILERS = {
  x64: { gcc: 'x86_64-linux-gnu-gcc', flags: ['-fcf-protection=none', '-Wl,-z,max-page-size=4096'] },
  arm64: { gcc: 'aarch64-linux-gnu-gcc', flags: ['-mno-outline-atomics', '-Wl,-z,max-page-size=65536'] },
}
const COMMON = [
  ...[
    '-std=gnu11',
    '-O2',
    '-Wall',
    '-Wextra',
    '-Werror',
    '-ffreestanding',
    '-nostdlib',
    '-fno-stack-protector',
  ],
  ...['-fno-asynchronous-unwind-tables', '-fno-ident', '-fno-tree-loop-distribute-patterns'],
  ...['-fvisibility=hidden', '-s', '-Wl,--build-id=none', '-Wl,-z,noexecstack', '-Wl,-z,relro,-z,now'],
]
const TARGETS = {
  'spawn.so': ['spawn.c', '-shared', '-fPIC', '-Wl,--no-undefined'],
  init: ['init.c', '-static', '-no-pie', '-fno-pie'],
  copy: ['copy.c', '-static', '-no-pie', '-fno-pie'],
  attack: ['attack.c', '-static', '-no-pie', '-fno-pie'],
}

const version = (gcc) => spawnSync(gcc, ['--version'], { encoding: 'utf8' }).stdout?.split('\n')[0] ?? 'none'

function build(into) {
  const sums = Object.values(COMPILERS).map(({ gcc }) => `# ${version(gcc)}`)
  for (const [arch, { gcc, flags }] of Object.entries(COMPILERS)) {
    mkdirSync(join(into, arch), { recursive: true })
    for (const [target, [file, ...kind]] of Object.entries(TARGETS)) {
      const run = spawnSync(gcc, [...COMMON, ...flags, ...kind, '-o', join(into, arch, target), file], {
        cwd: source,
        encoding: 'utf8',
      })
      if (run.status !== 0) throw new Error(`${gcc} ${file}: ${run.error?.message ?? run.stderr}`)
      const digest = createHash('sha256').update(readFileSync(join(into, arch, target)))
      sums.push(`${digest.digest('hex')}  ${arch}/${target}`)
    }
  }
  const text = `${sums.join('\n')}\n`
  writeFileSync(join(into, 'SHA256SUMS'), text)
  return text
}

const committed = join(source, 'prebuilt')
const isComment = (line) => line.startsWith('#')
if (process.argv.includes('--check')) {
  const expected = readFileSync(join(committed, 'SHA256SUMS'), 'utf8').split('\n')
  const here = Object.values(COMPILERS).map(({ gcc }) => `# ${version(gcc)}`)
  if (expected.filter(isComment).join() !== here.join()) {
    console.log(
      `not verified here: built with\n  ${expected.filter(isComment).join('\n  ')}\nand here is\n  ${here.join('\n  ')}`,
    )
    console.log('0 passed, 0 failed, 1 skipped')
  } else {
    const into = mkdtempSync(join(tmpdir(), 'puzzled-native-'))
    try {
      build(into)
      const differing = Object.keys(COMPILERS).flatMap((arch) =>
        Object.keys(TARGETS)
          .map((target) => `${arch}/${target}`)
          .filter((file) => !readFileSync(join(into, file)).equals(readFileSync(join(committed, file)))),
      )
      for (const file of differing)
        console.error(`daemon/native/prebuilt/${file} is not what its source builds`)
      if (differing.length === 0) console.log('native: the prebuilt files are what their sources build')
      else process.exitCode = 1
    } finally {
      rmSync(into, { recursive: true, force: true })
    }
  }
} else {
  process.stdout.write(build(committed))
}
