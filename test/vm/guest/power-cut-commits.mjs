// One round of the power-cut test, inside the machine: recover and verify what the last round left, then commit one
// generation after the other until the power goes. Every generation changes, adds and removes files of two bases.
import { execFileSync } from 'node:child_process'
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { cutPhase } from './cut-phase.mjs'
import { rest } from './rest.mjs'

const dist = fileURLToPath(new URL('../../../dist/workers/', import.meta.url))
let root
let store
let bases
const FILES = 40

const commits = new Worker(join(dist, 'commit.js'))
commits.unref()
let calls = 0

function workIn(folder) {
  root = folder
  store = join(root, 'store')
  bases = ['one', 'two'].map((name) => join(root, name))
}

/** One call on the commit worker; its hooks are told and answered at once. */
function call(verb, argument, tell = () => undefined) {
  const id = ++calls
  return new Promise((resolve, reject) => {
    const listen = (message) => {
      if (message.call !== id || message.kind === 'told') return
      if (message.kind === 'ask') {
        tell(message.what)
        return commits.postMessage({ call: id, kind: 'answer', error: null })
      }
      commits.off('message', listen)
      commits.unref()
      if (message.kind === 'result') resolve(message.value)
      else reject(new Error(JSON.stringify(message.error)))
    }
    commits.on('message', listen)
    commits.ref()
    commits.postMessage({ call: id, kind: 'call', verb, argument })
  })
}

function diff(job) {
  return new Promise((resolve, reject) => {
    const packed = []
    const worker = new Worker(join(dist, 'diff.js'), { workerData: job })
    worker.on('error', reject)
    worker.on('message', (message) => {
      if (message.kind === 'changes') packed.push(message.bytes)
      if (message.kind === 'done') resolve({ packed, digest: message.digest })
      if (message.kind === 'failed') reject(new Error(JSON.stringify(message.error)))
    })
  })
}

function writeDurably(path, text) {
  const file = openSync(path, 'w')
  writeSync(file, text)
  fsyncSync(file)
  closeSync(file)
}

/** Files of a base in generation `g`: all of them say so, and one of them has it in its name. */
const expected = (g) => [...Array.from({ length: FILES }, (_, n) => `file-${n}`), `dir-${g}`].sort()

function generationOf(base) {
  const names = readdirSync(base).sort()
  const g = Number(names.find((name) => name.startsWith('dir-'))?.slice(4))
  if (JSON.stringify(names) !== JSON.stringify(expected(g))) throw new Error(`${base} holds ${names}`)
  for (const name of [...names.filter((name) => name.startsWith('file-')), `dir-${g}/inside`]) {
    const text = readFileSync(join(base, name), 'utf8')
    if (text !== content(g))
      throw new Error(`${base}/${name} is of another generation than ${g}: ${text.slice(0, 20)}`)
  }
  return g
}

const content = (g) => `${g}\n`.padEnd(4000 + (g % 7) * 1000, String(g))

function fill(dir, g) {
  mkdirSync(dir, { recursive: true })
  for (let n = 0; n < FILES; n++) writeFileSync(join(dir, `file-${n}`), content(g))
  mkdirSync(join(dir, `dir-${g}`))
  writeFileSync(join(dir, `dir-${g}`, 'inside'), content(g))
}

function prepare() {
  rmSync(root, { recursive: true, force: true })
  for (const dir of ['journal', 'staging']) mkdirSync(join(store, dir), { recursive: true, mode: 0o700 })
  for (const base of bases) fill(base, 0)
  execFileSync('sync')
  writeDurably(join(root, 'acknowledged'), '0')
  execFileSync('sync')
  return 'begun'
}

async function verify() {
  const phase = cutPhase(join(store, 'journal'))
  const fates = await call('recover', { store, at: new Date().toISOString(), retry: [] })
  const stuck = fates.filter(({ fate }) => fate === 'stuck')
  if (stuck.length > 0) throw new Error(`stuck: ${JSON.stringify(stuck)}`)
  const [one, two] = bases.map(generationOf)
  if (one !== two) throw new Error(`the bases are of generations ${one} and ${two}`)
  const acknowledged = Number(readFileSync(join(root, 'acknowledged'), 'utf8')) || 0
  if (one < acknowledged) throw new Error(`generation ${acknowledged} was acknowledged, ${one} is there`)
  leaveNothing()
  await call('collect', { store, retention: { count: 0, ageMs: 0, bytes: 0 }, now: Date.now() })
  const left = [...readdirSync(join(store, 'journal')), ...readdirSync(join(store, 'staging'))]
  if (left.length > 0) throw new Error(`left over: ${left}`)
  return `${one === acknowledged ? 'old' : 'new'}, cut ${phase}`
}

/** Beside the kept old versions of finished commits nothing may stay. */
function leaveNothing() {
  const done = readdirSync(join(store, 'journal'))
    .filter((name) => name.endsWith('.log'))
    .map((name) => name.slice(0, -4))
  for (const name of readdirSync(join(store, 'journal')))
    if (!done.some((commit) => name === `${commit}.log` || name === `${commit}.changes`))
      throw new Error(`left over: ${name}`)
  for (const name of readdirSync(join(store, 'staging')))
    if (!done.includes(name)) throw new Error(`left over: staging/${name}`)
}

/** The layers of a generation, as overlayfs would have left them. */
async function commitGeneration(g, announce) {
  const uppers = bases.map((base) => `${base}.upper`)
  for (const upper of uppers) {
    rmSync(upper, { recursive: true, force: true })
    fill(upper, g)
    execFileSync('mknod', [join(upper, `dir-${g - 1}`), 'c', '0', '0'])
  }
  const job = {
    bases: bases.map((path, index) => {
      const { dev, mode, uid, gid } = statSync(path)
      return { path, dev, uppers: [uppers[index]], forked: { mode: mode & 0o7777, uid, gid, xattrs: [] } }
    }),
  }
  const { packed, digest } = await diff(job)
  const commit = `c${String(g).padStart(11, '0')}`
  const facts = {
    commit,
    branch: '23456789bc',
    digest,
    part: false,
    reverts: null,
    at: new Date().toISOString(),
  }
  const rules = {
    requester: { uid: 0, gid: 0, groups: [], name: 'root' },
    forkedAtNs: null,
    allowSetuid: false,
  }
  const targets = job.bases.map(({ path, dev }) => ({ path, dev }))
  const land = { store, job: { ...facts, ...rules, bases: targets }, packed, diff: job, filesDigest: digest }
  // The cut is aimed at what follows one of these lines.
  if (announce) console.log('working')
  await call('land', land, (what) => {
    if (announce && what === 'afterIntent') console.log('intent')
  })
}

try {
  // Everything is loaded and compiled before the machine is saved: then a round is long enough for several commits.
  workIn('/tmp/warm')
  prepare()
  for (const g of [1, 2, 3]) await commitGeneration(g, false)
  await rest()
  workIn(process.argv[2])
  console.log(`verified: ${existsSync(join(root, 'acknowledged')) ? await verify() : prepare()}`)
  const first = generationOf(bases[0]) + 1
  for (let g = first; ; g++) {
    await commitGeneration(g, g === first)
    writeDurably(join(root, 'acknowledged'), String(g))
    console.log(`landed ${g}`)
  }
} catch (error) {
  console.log(`broken: ${error.stack}`)
  process.exitCode = 1
}
