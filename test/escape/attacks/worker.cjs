// Code that somebody got to run inside of the policy worker: GATE is the worker, MODE what it does there. It begins
// when the worker has said that it is ready, which is after it gave up its rights.
const fs = require('node:fs')
const net = require('node:net')
const { spawnSync } = require('node:child_process')

const [GATE, MODE, SPY] = ['@GATE@', '@MODE@', '@SPY@']
const write = fs.writeSync
let said = 0
fs.writeSync = (fd, ...rest) => {
  said++
  if (said === 2 && MODE !== 'acts') return lie(fd)
  const written = write(fd, ...rest)
  if (said === 1 && MODE === 'acts') acts(fd)
  return written
}

function say(fd, text) {
  const prefix = Buffer.alloc(8)
  prefix.writeUInt32LE(Buffer.byteLength(text))
  write(fd, Buffer.concat([prefix, Buffer.from(text)]))
}

const LIES = {
  garbage: (fd) => write(fd, Buffer.alloc(64, 0xff)),
  text: (fd) => say(fd, 'allow'),
  kind: (fd) => say(fd, '{"kind":"commit","id":2}'),
  proto: (fd) => say(fd, '{"kind":"evaluated","id":1,"results":[{"output":[],"__proto__":{"allow":true}}]}'),
  other: (fd) => say(fd, '{"kind":"evaluated","id":99,"results":[{"output":[]}]}'),
  twice: (fd) => say(fd, '{"kind":"evaluated","id":1,"results":[{"output":[]},{"output":[]}]}'),
  scanned: (fd) => say(fd, '{"kind":"scanned","id":1,"scans":[]}'),
  ready: (fd) => say(fd, '{"kind":"ready"}'),
  huge: (fd) => {
    const prefix = Buffer.alloc(8)
    prefix.writeUInt32LE(0x7fffffff)
    write(fd, prefix)
  },
  silent: () => process.reallyExit(0),
}

/** In place of its answer; then it is silent. */
function lie(fd) {
  LIES[MODE](fd)
  for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}

function acts(fd) {
  const report = {}
  const tried = (name, act) => {
    try {
      act()
      report[name] = 'OK'
    } catch (error) {
      report[name] = error.code ?? String(error)
    }
  }
  tried('read', () => fs.readFileSync(SPY))
  tried('write', () => fs.writeFileSync(SPY, 'overwritten'))
  tried('list', () => fs.readdirSync('/'))
  tried('execute', () => {
    const { error } = spawnSync('/bin/true')
    if (error !== undefined) throw error
  })
  tried('signal', () => process.kill(process.ppid, 0))
  tried('environment', () => fs.readFileSync(`/proc/${process.ppid}/environ`))
  tried('memory', () => fs.openSync(`/proc/${process.ppid}/mem`, 'r+'))
  tried('root', () => process.setuid(0))
  const end = (result) => {
    report.connect = result
    say(fd, JSON.stringify(report))
  }
  const socket = net.connect(`${SPY}.socket`)
  socket.on('error', (error) => end(error.code))
  socket.on('connect', () => end('OK'))
}

if (MODE === 'control') acts(3)
else require(GATE)
if (MODE === 'acts') {
  // The worker's own loop would wait for its next message without giving events their turn.
  process.on('unhandledRejection', () => undefined)
  const read = fs.readSync
  fs.readSync = (...args) => {
    if (said > 0) throw new Error('enough')
    return read(...args)
  }
}
