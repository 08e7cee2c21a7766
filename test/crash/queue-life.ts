import { LIMITS } from '../../daemon/network/limits.ts'
import { RequestQueue } from '../../daemon/network/queue.ts'
import { type ReplayReport, replay } from '../../daemon/network/replay.ts'
import { compileRules } from '../../daemon/network/request-rule.ts'
import { PinnedResolver } from '../../daemon/network/resolver.ts'
import { Sender } from '../../daemon/network/send.ts'
import { network, rule } from '../fixtures/network-rules.ts'

/** One life of the daemon: queues up to `count` requests, approves, replays. `accepted` is what an agent hears with its 202. */
export async function queueLife(
  directory: string,
  port: number,
  count: number,
  accepted: (id: string) => void,
): Promise<ReplayReport> {
  const queue = await RequestQueue.open(directory)
  const given = { method: 'POST', scheme: 'http', host: '127.0.0.1', port, headers: [], rule: 'all' } as const
  for (let n = queue.list().length; n < count; n++) {
    const spooled = await queue.spool(body(n % 2 === 0 ? `small ${n}` : `${n} large`))
    const { id } = await queue.add({ ...given, target: `/${n}` }, spooled)
    accepted(id)
  }
  await queue.approve(queue.summaries())
  const rules = compileRules(
    network([rule('all', { hosts: ['127.0.0.1'], ports: [port], class: 'queue', addresses: ['127.0.0.1'] })]),
  )
  const resolver = new PinnedResolver()
  const limits = { ...LIMITS, responseMs: 2_000, connectMs: 1_000 }
  const report = await replay(queue, new Sender({ queue, rules, resolver, credentials: [], limits, ca: [] }))
  await queue.close()
  return report
}

async function* body(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text.padEnd(text.endsWith('large') ? 40_000 : text.length))
}
