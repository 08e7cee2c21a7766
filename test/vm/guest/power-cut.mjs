// power-cut.mjs DIR: one round of the power-cut test, inside the VM (test/vm/power-cut.mjs is the other half).
// First what the last round left: recovery runs because puzzlectl opens the store, then the base must be one generation
// as a whole. Then work: hold the next generation, say "working", approve it, say "intent". The power goes at a random
// moment after one of these lines.
import { spawn, spawnSync } from 'node:child_process'
import {
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  statSync,
  symlinkSync,
  watch,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cutPhase } from './cut-phase.mjs'
import { rest } from './rest.mjs'

const dir = process.argv[2]
const base = join(dir, 'base')
const program = fileURLToPath(new URL('../../../dist/puzzlectl.js', import.meta.url))
const FILES = 120

function puzzlectl(verb, ...args) {
  const done = spawnSync(process.execPath, [program, verb, '--state-dir', join(dir, 'state'), ...args], {
    cwd: base,
    encoding: 'utf8',
  })
  return { status: done.status, out: done.stdout, said: `${done.stdout}${done.stderr}` }
}

/** The same while this program looks on: a journal that gets its name is INTENT. */
async function approve(name, announce) {
  const journal = watch(join(dir, 'state/journal'), (_event, file) => {
    if (!announce || !file?.endsWith('.log')) return
    announce = false
    console.log('intent')
  })
  const args = [program, 'approve', '--state-dir', join(dir, 'state'), name]
  const child = spawn(process.execPath, args, { cwd: base, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (said += chunk))
  const status = await new Promise((resolve) => child.once('close', resolve))
  journal.close()
  return { status, said }
}

function fail(message) {
  console.log(`FAILED: ${message}`)
  process.exit(1)
}

/** A number that survives the cut: file, sync, rename, sync. */
function note(name, number) {
  writeFileSync(join(dir, `${name}.new`), String(number))
  for (const step of ['write', 'rename']) {
    if (step === 'rename') renameSync(join(dir, `${name}.new`), join(dir, name))
    const fd = openSync(step === 'write' ? join(dir, `${name}.new`) : dir, 'r')
    fsyncSync(fd)
    closeSync(fd)
  }
}

const noted = (name) => (existsSync(join(dir, name)) ? Number(readFileSync(join(dir, name), 'utf8')) : 0)

/** Everything of a generation as `path kind mode content`, sorted: files, modes, a link, and a folder that moves on. */
function expected(generation) {
  const mode = generation % 2 === 0 ? '644' : '600'
  const files = Array.from({ length: FILES }, (_, index) => `file-${index} f ${mode} ${generation}`)
  const folder = [`only-${generation}/a f 644 ${generation}`, `only-${generation}/b f 644 ${generation}`]
  return [...files, ...folder, `current l only-${generation}`].sort()
}

/** What an agent does to get from any generation to this one. */
const script = (generation) => `
  umask 022; rm -rf only-*; mkdir only-${generation}
  for f in a b; do echo ${generation} > only-${generation}/$f; done
  i=0; while [ $i -lt ${FILES} ]; do echo ${generation} > file-$i; i=$((i + 1)); done
  chmod ${generation % 2 === 0 ? 644 : 600} file-*
  ln -sfn only-${generation} current`

function actual(below = '') {
  return readdirSync(join(base, below))
    .flatMap((name) => {
      const path = join(below, name)
      const stat = lstatSync(join(base, path))
      if (stat.isDirectory()) return actual(path)
      if (stat.isSymbolicLink()) return [`${path} l ${readlinkSync(join(base, path))}`]
      return [`${path} f ${(stat.mode & 0o777).toString(8)} ${readFileSync(join(base, path), 'utf8').trim()}`]
    })
    .sort()
}

/** The generation that the base is as a whole; a mixture ends the test. */
function wholeGeneration() {
  const found = actual()
  const generation = Number(/file-0 f \d+ (\d+)/.exec(found.join('\n'))?.[1])
  const wanted = expected(generation)
  const wrong = found.filter((line, index) => line !== wanted[index])
  if (wrong.length > 0 || found.length !== wanted.length)
    fail(`the base is no generation as a whole (${generation}?): ${wrong.slice(0, 5).join('; ')}`)
  return generation
}

/** Recovers by opening the store, then compares the base with what was tried and with what was said. */
function verify() {
  const phase = cutPhase(join(dir, 'state/journal'))
  const listed = puzzlectl('ls', '--all', '--json')
  if (listed.status !== 0) fail(`the store does not open: ${listed.said}`)
  const generation = wholeGeneration()
  const tried = noted('tried')
  if (generation !== tried && generation !== tried - 1)
    fail(`generation ${generation}, and ${tried} was tried`)
  if (generation < noted('said'))
    fail(`"committed" was said for ${noted('said')}, and the base is ${generation}`)
  for (const state of ['committing', 'commit-stuck', 'discard-stuck'])
    if (listed.out.includes(`"${state}"`)) fail(`a branch is ${state} after recovery: ${listed.out}`)
  console.log(`verified: ${generation === tried ? 'new' : 'old'}, cut ${phase}`)
  return generation
}

function begin() {
  mkdirSync(base, { recursive: true })
  mkdirSync(join(dir, 'state'))
  for (const line of expected(1)) {
    const [path, kind, mode] = line.split(' ')
    if (kind === 'l') continue
    mkdirSync(join(base, 'only-1'), { recursive: true })
    writeFileSync(join(base, path), '1\n', { mode: Number.parseInt(mode, 8) })
  }
  symlinkSync('only-1', join(base, 'current'))
  note('tried', 1)
  spawnSync('sync')
  console.log('verified: first')
  return 1
}

/** One generation further: held, then approved. Only the second half is what the cut is aimed at. */
async function advance(generation, announce) {
  const name = `g${generation}-${Date.now()}`
  const held = puzzlectl(
    'run',
    '--base',
    base,
    '--then',
    'hold',
    '--name',
    name,
    '--',
    'sh',
    '-c',
    script(generation),
  )
  if (held.status !== 0) fail(`the next generation was not held (${held.status}): ${held.said}`)
  note('tried', generation)
  if (announce) console.log('working')
  const landed = await approve(name, announce)
  if (landed.status !== 0) fail(`generation ${generation} was not committed: ${landed.said}`)
  note('said', generation)
  console.log(`landed ${generation}`)
}

// What a round needs is read once before the machine is saved.
spawnSync(process.execPath, [program, 'ls', '--help'])
await rest()
if (statSync(dir, { throwIfNoEntry: false }) === undefined) mkdirSync(dir)
let generation = existsSync(join(dir, 'tried')) ? verify() : begin()
for (let first = true; ; first = false) await advance(++generation, first)
