// Compiles policies/*.rego into policies/dist/commit.wasm with the `opa` compiler, and runs the Rego tests.
//   node tools/build-policy.mjs           tests, compiles, writes dist/
//   node tools/build-policy.mjs --check   tests, compiles, and says whether dist/ is what the sources give
// The compiler is a build tool only: `$OPA`, or `opa` of exactly the version below built from its Go module into the
// user's cache. Its output depends on sources and version alone, so that anybody can repeat it.
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const VERSION = '1.22.0'
const ENTRYPOINT = 'puzzled/commit/decision'
const policies = fileURLToPath(new URL('../policies/', import.meta.url))
const sources = ['commit.rego', 'lib']

function compiler() {
  if (process.env.OPA) return process.env.OPA
  const cache = join(
    process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'),
    'puzzled-tools',
    `opa-${VERSION}`,
  )
  const opa = join(cache, 'opa')
  if (existsSync(opa)) return opa
  requireGo()
  console.log(`building opa ${VERSION} (once)`)
  execFileSync('go', ['install', '-trimpath', `github.com/open-policy-agent/opa@v${VERSION}`], {
    env: { ...process.env, GOBIN: cache, CGO_ENABLED: '0' },
    stdio: 'inherit',
  })
  return opa
}

/** Go 1.21 and later fetch the toolchain that a module asks for; Debian 12's does not. */
function requireGo() {
  const go = spawnSync('go', ['env', 'GOVERSION'], { encoding: 'utf8' })
  const minor = Number(/^go1\.(\d+)/.exec(go.stdout ?? '')?.[1] ?? 0)
  if (minor >= 21) return
  const here = minor === 0 ? 'there is none' : `this is ${go.stdout.trim()}`
  console.log(`policy: nothing was verified: building opa needs Go 1.21 or newer, and ${here}`)
  if (process.argv.includes('--check')) console.log('0 passed, 0 failed, 1 skipped')
  process.exit(process.argv.includes('--check') ? 0 : 1)
}

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex')

/** What opa writes is a tar archive; its own reader is not needed for one member. */
function compile(opa) {
  const dir = mkdtempSync(join(tmpdir(), 'puzzled-policy-'))
  try {
    const bundle = join(dir, 'bundle.tar.gz')
    execFileSync(opa, ['build', '-t', 'wasm', '-e', ENTRYPOINT, '-O', '0', '-o', bundle, ...sources], {
      cwd: policies,
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    return execFileSync('tar', ['-xzOf', bundle, '/policy.wasm'], { maxBuffer: 64 * 1024 * 1024 })
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

const opa = compiler()
const found = /^Version: (.*)$/m.exec(execFileSync(opa, ['version'], { encoding: 'utf8' }))?.[1]
if (found !== VERSION) {
  console.error(`${opa} is version ${found}; the policies are compiled with ${VERSION}`)
  process.exit(1)
}
execFileSync(opa, ['fmt', '--fail', '--list', ...sources, 'commit_test.rego'], {
  cwd: policies,
  stdio: 'inherit',
})
execFileSync(opa, ['check', '--strict', ...sources], { cwd: policies, stdio: 'inherit' })
execFileSync(opa, ['test', '--format=pretty', ...sources, 'commit_test.rego'], {
  cwd: policies,
  stdio: 'inherit',
})

const wasm = compile(opa)
/** The catalogue as data, for tests, documentation and `puzzlectl policy list`. */
function catalogue(opa) {
  const query = [
    'eval',
    '--format=values',
    'data.puzzled.vectors.catalogue',
    ...sources.flatMap((each) => ['-d', each]),
  ]
  const [value] = JSON.parse(execFileSync(opa, query, { cwd: policies, encoding: 'utf8' }))
  return Buffer.from(`${JSON.stringify(value, null, 1)}\n`)
}

const files = {
  'commit.wasm': wasm,
  'vectors.json': catalogue(opa),
  COMPILER: Buffer.from(`opa ${VERSION}\nentrypoint ${ENTRYPOINT}\n`),
}
files.SHA256SUMS = Buffer.from(
  Object.entries(files)
    .map(([name, bytes]) => `${sha256(bytes)}  ${name}\n`)
    .join(''),
)
mkdirSync(`${policies}dist`, { recursive: true })
let stale = 0
for (const [name, bytes] of Object.entries(files)) {
  const path = `${policies}dist/${name}`
  if (existsSync(path) && readFileSync(path).equals(bytes)) continue
  stale++
  if (process.argv.includes('--check'))
    console.error(`stale: policies/dist/${name} (run: npm run build:policy)`)
  else {
    writeFileSync(path, bytes)
    console.log(`wrote policies/dist/${name}`)
  }
}
if (process.argv.includes('--check')) {
  console.log(stale === 0 ? `policies/dist is what opa ${VERSION} makes of the sources` : `${stale} stale`)
  process.exitCode = stale === 0 ? 0 : 1
}
