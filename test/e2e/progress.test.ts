import { writeFileSync } from 'node:fs'
import { afterEach, expect } from 'vitest'
import { BRANCH, BUS_NAME, branchPath, MANAGER, MANAGER_PATH } from '../../daemon/contract/bus.ts'
import type { BusConnection, BusMessage } from '../../daemon/lib/bus-connection.ts'
import { filesIn, onBus } from './grounds.ts'
import { end, WHO } from './private-bus.ts'

const { here, it } = onBus('each')

const open: BusConnection[] = []
afterEach(async () => {
  for (const connection of open.splice(0)) await connection.close()
})

interface Listener {
  connection: BusConnection
  heard: BusMessage[]
}
/** A connection that the daemon knows, and the signals that it gets. */
async function listener(): Promise<Listener> {
  const connection = await here.connect()
  open.push(connection)
  const heard: BusMessage[] = []
  connection.onSignal((message) => heard.push(message))
  await connection.call({
    ...{ destination: BUS_NAME, path: MANAGER_PATH, interface: MANAGER.name },
    member: 'ListBranches',
  })
  return { connection, heard }
}

it('who called hears how far it is, by the serial of the call; others hear only that it is done', async () => {
  const script = ['sh', '-c', 'seq 20 | xargs touch']
  const { out } = await here.puzzlectl(WHO.developer, 'run', '--json', '--then', 'hold', '--', ...script)
  const path = branchPath((JSON.parse(out) as { branch: string }).branch)
  const [mine, others] = [await listener(), await listener()]
  const approve = { destination: BUS_NAME, path, interface: BRANCH.name, member: 'Approve' }
  await mine.connection.call({ ...approve, signature: 'sasass', body: ['', [], [], ''] })
  const told = mine.heard.filter(({ member }) => member === 'Progress')
  expect(told[0]).toMatchObject({ path, interface: BRANCH.name })
  // ListBranches was the second message of the connection, Hello the first.
  expect(told[0]?.body?.map(Number)).toEqual([3, 1, 20])
  const landed = (message: BusMessage): boolean =>
    message.member === 'StateChanged' && message.body?.[1] === 'committed'
  await expect.poll(() => others.heard.some(landed)).toBe(true)
  expect(others.heard.filter(({ member }) => member === 'Progress')).toEqual([])
})

/** What is told of one call of the manager, after the first two messages of a connection. */
async function toldOf(member: string, signature: string, body: readonly unknown[]): Promise<BusMessage[]> {
  const [mine, others] = [await listener(), await listener()]
  const call = { destination: BUS_NAME, path: MANAGER_PATH, interface: MANAGER.name, member }
  await mine.connection.call(signature === '' ? call : { ...call, signature, body })
  // An answer comes behind every signal that was sent before it.
  await others.connection.call({ ...call, member: 'ListBranches' })
  expect(others.heard.filter(({ member: name }) => name === 'Progress')).toEqual([])
  return mine.heard.filter(({ member: name }) => name === 'Progress')
}
const MANAGER_OBJECT = { path: MANAGER_PATH, interface: MANAGER.name }

it('of Revert and Collect, too, who called hears on the manager, and nobody else', async () => {
  filesIn(here.project, 20)
  const script = ['sh', '-c', 'for name in $(seq 20); do echo new > $name; done']
  const { out } = await here.puzzlectl(WHO.root, 'run', '--json', '--', ...script)
  const { commit } = JSON.parse(out) as { commit: string }
  const reverting = await toldOf('Revert', 's', [commit])
  expect(reverting[0]).toMatchObject(MANAGER_OBJECT)
  expect(reverting[0]?.body?.map(Number)).toEqual([3, 1, 20])
  await end(here.daemon, 'SIGTERM')
  writeFileSync(here.config, 'retention: { commits: 0 }\n', { flag: 'a' })
  await here.start()
  const collecting = await toldOf('Collect', '', [])
  expect(collecting[0]).toMatchObject(MANAGER_OBJECT)
  // Both commits go: the one above, and the one that took it back.
  expect(collecting[0]?.body?.map(Number)).toEqual([3, 0, 2])
})
