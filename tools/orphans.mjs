// A machine whose first process collects no orphans (a container that was started without an init) keeps every process whose
// parent has gone as a zombie. A PID namespace cannot end while one of its own is left, so tests would wait for ever.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const PATIENCE_MS = 2_000
const MARK = 'PUZZLED_ORPHANS_COLLECTED'

/** Makes an orphan that ends at once, and looks whether it goes away. */
function collectsOrphans() {
  const pid = spawnSync('sh', ['-c', 'sleep 0 & echo $!'], { encoding: 'utf8' }).stdout.trim()
  const until = performance.now() + PATIENCE_MS
  for (;;) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      if (!/\) Z /.test(stat) || performance.now() < until) spawnSync('sleep', ['0.02'])
      else return false
    } catch (error) {
      if (error.code === 'ENOENT' || error.code === 'ESRCH') return true
      throw error
    }
  }
}

/** Where nobody collects orphans, this program runs again below a shell that does, as the first process of a PID namespace. */
export function runWhereOrphansEnd() {
  if (process.env[MARK] !== undefined || process.geteuid() !== 0 || collectsOrphans()) return
  console.log('The first process here collects no orphans: going on in a PID namespace with one that does')
  const namespace = ['--pid', '--fork', '--kill-child', '--mount-proc', '--propagation', 'slave']
  // Not the shell's last command, so that the shell stays.
  const shell = ['sh', '-c', '"$@"; exit $?', 'sh']
  const done = spawnSync('unshare', [...namespace, ...shell, process.execPath, ...process.argv.slice(1)], {
    stdio: 'inherit',
    env: { ...process.env, [MARK]: '1' },
  })
  process.exit(done.status ?? 1)
}
