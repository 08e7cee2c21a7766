import { confineProcess } from './kernel/confine.ts'
import { serveGate } from './policy/gate-serve.ts'
import { workerFilter } from './sandbox/seccomp.ts'

// What `ps` shows: an operator must be able to tell it from the daemon.
process.title = 'puzzled-gate'

/** What judges an agent's files runs without any right to files, sockets or processes. */
void serveGate(() => confineProcess(workerFilter(process.arch === 'arm64' ? 'arm64' : 'x64')))
