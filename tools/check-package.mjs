// Packs, installs globally into a temporary prefix, and uses what was installed from another directory.
// The last line is the totals.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { installInto, pack, repository } from './package-tree.mjs'

const { version } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8'))
const dir = mkdtempSync(join(tmpdir(), 'puzzled-package-'))
const prefix = join(dir, 'prefix')

const work = join(dir, 'work')
mkdirSync(work)

/** Name, command line, and what it must print. The store is a temporary one. */
const CHECKS = [
  ['puzzlectl says its version', ['puzzlectl', '--version'], `puzzlectl ${version}`],
  ['puzzled says its version', ['puzzled', '--version'], `puzzled ${version}`],
  ['koffi and the prebuilt parts are found', ['puzzlectl', 'doctor'], 'landlock'],
  ['profiles, workers and policies are found', ['puzzlectl', 'explain', '--', 'true'], 'execveat'],
  [
    'fork, change, judge, commit',
    ['puzzlectl', 'run', '--state-dir', join(dir, 'state'), '--', 'sh', '-c', 'echo a > b; cat b'],
    'a',
    process.geteuid() === 0,
  ],
]

let passed = 0
let failed = 0
let skipped = 0
/** Pages that `npm install --global` must put where man(1) looks for those of this prefix. */
const PAGES = ['man1/puzzlectl.1', 'man5/puzzle-profile.5', 'man5/puzzled.yaml.5', 'man8/puzzled.8']

function countPages() {
  const missing = PAGES.filter((page) => !existsSync(join(prefix, 'share/man', page)))
  if (missing.length === 0) passed++
  else failed++
  console.log(
    missing.length === 0
      ? 'ok   the manual pages are installed'
      : `FAIL not installed: ${missing.join(', ')}`,
  )
}

/** A program in TypeScript that uses what was installed, checked as strictly as it can be and without our settings. */
function compileProgram() {
  const app = join(dir, 'app')
  mkdirSync(join(app, 'node_modules'), { recursive: true })
  symlinkSync(join(prefix, 'lib/node_modules/puzzled'), join(app, 'node_modules/puzzled'))
  symlinkSync(join(repository, 'node_modules/@types'), join(app, 'node_modules/@types'))
  writeFileSync(join(app, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(app, 'main.ts'), PROGRAM)
  const flags = ['--strict', '--module', 'nodenext', '--target', 'es2023', '--types', 'node', '--noEmit']
  const compiler = join(repository, 'node_modules/.bin/tsc')
  const compile = () => spawnSync(compiler, [...flags, 'main.ts'], { cwd: app, encoding: 'utf8' })
  const good = compile()
  // The control: a mistake in the same program is found, so the types are not all `any`.
  writeFileSync(join(app, 'main.ts'), PROGRAM.replace('engine.list()', 'engine.lsit()'))
  const wrong = compile()
  const fine = good.status === 0 && wrong.status !== 0 && wrong.stdout.includes('lsit')
  if (fine) passed++
  else failed++
  console.log(`${fine ? 'ok  ' : 'FAIL'} a TypeScript program sees the types`)
  if (!fine) console.log(good.stdout, wrong.stdout)
}

const PROGRAM = `import { connect, type BranchSummary, runRequest } from 'puzzled'
const engine = await connect({ stateDir: '/nowhere' })
const session = await engine.run(runRequest(['true'], { afterwards: 'hold' }))
const all: readonly BranchSummary[] = await engine.list()
console.log(session.id, all.length)
`

try {
  installInto(prefix, pack(dir))
  countPages()
  compileProgram()
  for (const [name, [program, ...args], expected, possible = true] of CHECKS) {
    if (!possible) {
      console.log(`skipped (not verified here) – needs root: ${name}`)
      skipped++
      continue
    }
    const done = spawnSync(join(prefix, 'bin', program), args, { cwd: work, encoding: 'utf8' })
    const good = done.stdout?.includes(expected) === true
    if (good) passed++
    else failed++
    console.log(`${good ? 'ok  ' : 'FAIL'} ${name}`)
    if (!good) console.log(`${[program, ...args].join(' ')}: ${done.error ?? ''}${done.stdout}${done.stderr}`)
  }
} catch (error) {
  failed++
  console.log(error.message)
} finally {
  rmSync(dir, { recursive: true, force: true })
}
process.exitCode = failed === 0 ? 0 : 1
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`)
