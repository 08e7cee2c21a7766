import { afterEach, expect } from 'vitest'
import { BRANCH, BUS_NAME, branchPath, MANAGER, MANAGER_PATH } from '../../daemon/contract/bus.ts'
import type { BusConnection, BusMessage } from '../../daemon/lib/bus-connection.ts'
import { onBus } from './grounds.ts'
import { WHO } from './private-bus.ts'

const { here, it } = onBus('each')

const open: BusConnection[] = []
afterEach(async () => {
  for (const connection of open.splice(0)) await connection.close()
})

/** A connection that the daemon knows, and the signals that it gets. */
async function listener(): Promise<{ connection: BusConnection; heard: BusMessage[] }> {
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
