import { LIMITS } from '../../daemon/network/limits.ts'
import { RequestQueue } from '../../daemon/network/queue.ts'
import { replay } from '../../daemon/network/replay.ts'
import { compileRules } from '../../daemon/network/request-rule.ts'
import { PinnedResolver } from '../../daemon/network/resolver.ts'
import { Sender } from '../../daemon/network/send.ts'
import { network, rule } from '../fixtures/network-rules.ts'

/** One life of the daemon: queues `count` requests, approves, replays; dies where PUZZLED_FAILPOINTS says. */
const [directory = '', port = '0', count = '0'] = process.argv.slice(2)
const queue = await RequestQueue.open(directory)

async function* body(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text.padEnd(text.endsWith('large') ? 40_000 : text.length))
}

const head = {
  method: 'POST',
  scheme: 'http',
  host: '127.0.0.1',
  port: Number(port),
  headers: [],
  rule: 'all',
} as const
for (let n = queue.list().length; n < Number(count); n++) {
  const spooled = await queue.spool(body(n % 2 === 0 ? `small ${n}` : `${n} large`))
  const { id } = await queue.add({ ...head, target: `/${n}` }, spooled)
  // What an agent would have been told with its 202.
  process.stdout.write(`accepted ${id}\n`)
}
await queue.approve(queue.summaries())
const rules = compileRules(
  network([
    rule('all', { hosts: ['127.0.0.1'], ports: [Number(port)], class: 'queue', addresses: ['127.0.0.1'] }),
  ]),
)
const resolver = new PinnedResolver()
const limits = { ...LIMITS, responseMs: 2_000, connectMs: 1_000 }
const report = await replay(queue, new Sender({ queue, rules, resolver, credentials: [], limits, ca: [] }))
process.stdout.write(`${JSON.stringify(report)}\n`)
await queue.close()
