// machine-loss.mjs begin|again|end: branches in every state while the machine goes down, and what is there after it came
// up (test/vm/machine-loss.mjs is the other half). The store and the project are on the disk that survives; the service
// is installed anew after each boot, because the root disk does not.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const program = fileURLToPath(new URL('../../../dist/puzzlectl.js', import.meta.url))
const project = '/data/project'
const dropIn = '/etc/systemd/system/puzzled.service.d'

function type(user, ...command) {
  const identity = user === 'root' ? [] : ['runuser', '-u', user, '--']
  const [first, ...rest] = [...identity, ...command]
  const done = spawnSync(first, rest, { cwd: project, encoding: 'utf8' })
  return { status: done.status, out: done.stdout, said: `${done.stdout}${done.stderr}` }
}

const puzzlectl = (user, ...args) => type(user, process.execPath, program, ...args)

function must(done, status = 0) {
  assert.equal(done.status, status, done.said)
  return done.out
}

const states = () =>
  Object.fromEntries(
    JSON.parse(must(puzzlectl('root', 'ls', '--all', '--json'))).map(({ name, state }) => [name, state]),
  )

/** The service with its store on the disk that survives. A failpoint kills the daemon in a commit, as a fault would. */
function serve(failpoint) {
  mkdirSync('/etc/puzzled', { recursive: true })
  writeFileSync('/etc/puzzled/puzzled.yaml', 'state_dir: /data/store\n')
  mkdirSync(dropIn, { recursive: true })
  const armed =
    failpoint === undefined ? '' : `Environment=PUZZLED_FAILPOINTS=${failpoint}=kill\nRestart=no\n`
  writeFileSync(`${dropIn}/test.conf`, `[Service]\n${armed}`)
  must(puzzlectl('root', 'daemon', 'install'))
}

const agent = (name, script, ...options) =>
  must(puzzlectl('alice', 'run', '--name', name, ...options, '--', 'sh', '-c', script))

async function until(what, holds) {
  for (let tries = 0; !holds(); tries++) {
    assert.ok(tries < 100, `${what} did not come about`)
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}

/** A held branch, one that runs, one that stands still, and one whose commit the daemon does not survive. */
async function populate(round, failpoint) {
  serve(failpoint)
  agent(`held-${round}`, `echo held > held-${round}`, '--then', 'hold')
  agent(`landing-${round}`, `echo landed > landed-${round}; echo too > landed-too-${round}`, '--then', 'hold')
  for (const name of ['running', 'frozen'])
    agent(`${name}-${round}`, `echo ${name} > ${name}-${round}; sync; exec sleep 1000`, '--detach')
  for (const name of ['running', 'frozen'])
    await until(`the writes of ${name}`, () =>
      puzzlectl('alice', 'diff', '--name-only', `${name}-${round}`).out.includes(`${name}-${round}`),
    )
  must(puzzlectl('alice', 'freeze', `frozen-${round}`))
  const before = states()
  assert.deepEqual(
    ['held', 'landing', 'running', 'frozen'].map((name) => before[`${name}-${round}`]),
    ['held', 'held', 'running', 'frozen'],
  )
  assert.notEqual(puzzlectl('bob', 'approve', `landing-${round}`).status, 0, 'the commit was to be cut off')
}

/** After the boot: everything is in its documented state, the base is whole, and nothing of the old life is left. */
function verify(round, landed) {
  const found = states()
  assert.deepEqual(
    ['held', 'landing', 'running', 'frozen'].map((name) => found[`${name}-${round}`]),
    ['held', landed ? 'committed' : 'stopped', 'stopped', 'stopped'],
  )
  const files = () => readdirSync(project).filter((name) => name.endsWith(`-${round}`))
  const [one, too] = [`landed-${round}`, `landed-too-${round}`]
  assert.deepEqual(files().sort(), landed ? [one, too] : [])
  assert.equal(must(type('root', 'systemctl', 'list-units', '--no-legend', 'puzzle-*.scope')), '')
  assert.doesNotMatch(readFileSync('/proc/self/mountinfo', 'utf8'), /\/data\/store\/branches/)
  assert.deepEqual(readdirSync('/data/store/trash'), [])
  assert.deepEqual(
    readdirSync('/data/store/journal').filter((name) => /\.(open|new)$/.test(name)),
    [],
  )
  assert.equal(
    existsSync('/sys/fs/cgroup/puzzle.slice') &&
      readdirSync('/sys/fs/cgroup/puzzle.slice').some((name) => name.endsWith('.scope')),
    false,
  )
  // What was written before the end is kept, nothing of it landed by itself, and all of it can still land.
  const names = ['held', 'running', 'frozen', ...(landed ? [] : ['landing'])]
  for (const name of names.slice(1)) puzzlectl('alice', 'commit', `${name}-${round}`)
  for (const name of names) must(puzzlectl('bob', 'approve', `${name}-${round}`))
  assert.deepEqual(files().sort(), [`frozen-${round}`, `held-${round}`, one, too, `running-${round}`].sort())
  for (const name of ['running', 'frozen', 'held'])
    assert.equal(readFileSync(`${project}/${name}-${round}`, 'utf8'), `${name}\n`)
  must(puzzlectl('root', 'audit', 'verify', '--state-dir', '/data/store'))
  console.log(`verified: after round ${round} all branches are in their documented state`)
}

const [stage] = process.argv.slice(2)
if (stage === 'begin') {
  mkdirSync(project)
  chownSync(project, Number(must(type('root', 'id', '-u', 'alice'))), -1)
  await populate('cut', 'commit.after-intent')
} else if (stage === 'again') {
  serve()
  verify('cut', true)
  await populate('down', 'commit.before-intent')
} else {
  serve()
  verify('down', false)
}
console.log(`ready: ${stage}`)
