import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { parseAddress } from '../../daemon/network/address.ts'
import { Launcher } from '../../daemon/sandbox/launch.ts'
import { network, rule } from '../fixtures/network-rules.ts'
import { needs, program, root } from '../tier/needs.ts'
import { makeBranch, run, type TestBranch, warmUp } from './branch.fixture.ts'
import { Rig } from './network-rig.ts'

const it = needs(root, program('curl'), program('openssl'))
const GIB = 1024 ** 3
const HOST = 'live.example.com'
const NETWORK = network([
  rule('live', { hosts: [HOST], ports: [443], class: 'live' }),
  rule('write', { hosts: ['a.example.com'], ports: [443], methods: ['POST', 'PUT'], class: 'queue' }),
])

/** The other end in a process of its own: what this process holds is what the gate holds. */
const SERVER = `
const [address, key, cert] = process.argv.slice(1)
const piece = Buffer.alloc(1 << 18, 'x')
require('https').createServer({ key, cert }, (request, response) => {
  let taken = 0
  request.on('data', (chunk) => { taken += chunk.length })
  if (request.method !== 'GET') return request.on('end', () => response.end(String(taken)))
  let left = ${GIB}
  const more = () => { while (left > 0) { left -= piece.length; if (!response.write(piece)) return response.once('drain', more) }
    response.end() }
  response.setHeader('content-length', left); more()
}).listen(443, address, () => console.log('ready'))
`

let rig: Rig
let branch: TestBranch
let launcher: Launcher
let server: ChildProcess
let room: string
beforeAll(async () => await warmUp(new Launcher()))
beforeEach(async () => {
  room = mkdtempSync(join(tmpdir(), 'puzzled-volume-'))
  const address = `127.89.${randomInt(1, 255)}.${randomInt(1, 255)}`
  const [key, cert] = [join(room, 'key'), join(room, 'cert')]
  const names = ['-subj', `/CN=${HOST}`, '-addext', `subjectAltName=DNS:${HOST}`]
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  execFileSync('openssl', ['req', '-x509', ...curve, '-keyout', key, '-out', cert, ...names], {
    stdio: 'ignore',
  })
  const certificate = readFileSync(cert, 'utf8')
  server = spawn(process.execPath, ['-e', SERVER, '--', address, readFileSync(key, 'utf8'), certificate], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await new Promise((ready) => server.stdout?.once('data', ready))
  const parsed = parseAddress(address)
  const rules = NETWORK.rules.map((one) => ({ ...one, addresses: ['127.89.0.0/16'] }))
  rig = await Rig.open(
    { ...NETWORK, rules },
    {
      lookup: async () => ({ addresses: parsed === undefined ? [] : [parsed], ttlSeconds: 60 }),
      authorities: [certificate],
    },
  )
  branch = makeBranch({ profile: { network: NETWORK } })
  launcher = new Launcher({ network: async () => rig.network })
})
afterEach(async () => {
  server.kill()
  branch.remove()
  await rig.close()
  rmSync(room, { recursive: true })
})

/** Runs a command and says how much the most was that this process held meanwhile, above what it held before. */
async function growth(script: string): Promise<{ output: string; grown: number }> {
  const before = process.memoryUsage().rss
  let most = before
  let running = true
  const watch = (async () => {
    while (running) {
      most = Math.max(most, process.memoryUsage().rss)
      await setTimeout(20)
    }
  })()
  const { output, errors } = await run(launcher, branch, ['sh', '-c', script])
  running = false
  await watch
  expect(errors).toBe('')
  return { output, grown: (most - before) / 1024 ** 2 }
}

const ZEROS = `head -c ${GIB} /dev/zero`
it.each([
  ['downloaded', `curl -sS https://${HOST}/big | wc -c`, String(GIB)],
  ['downloaded by HTTP/1.1', `curl -sS --http1.1 https://${HOST}/big | wc -c`, String(GIB)],
  ['uploaded', `${ZEROS} | curl -sS -T - https://${HOST}/up`, String(GIB)],
  [
    'written to a full queue',
    `${ZEROS} | curl -sS -o /dev/null -w '%{http_code}' -T - https://a.example.com/up`,
    '413',
  ],
])('1 GiB that is %s takes a bounded part of the memory', async (name, script, expected) => {
  const { output, grown } = await growth(script)
  console.log(`1 GiB ${name}: at most ${grown.toFixed(0)} MiB more`)
  expect(output.trim()).toBe(expected)
  // Buffers of a stream and garbage that was not collected yet; a copy would be a thousand.
  expect(grown).toBeLessThan(160)
})
