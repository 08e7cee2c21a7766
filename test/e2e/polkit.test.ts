import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { Polkit } from '../../daemon/api/polkit.ts'
import { MANAGER, MANAGER_PATH } from '../../daemon/contract/bus.ts'
import type { BusConnection, BusMessage } from '../../daemon/lib/bus-connection.ts'
import { onBus } from './grounds.ts'
import { type Identity, WHO } from './private-bus.ts'
import { type Answer, pythonCall, pythonDbus } from './python-client.ts'

const { here, it: check } = onBus('each', pythonDbus)
let authority: BusConnection
let asked: BusMessage[]
beforeEach(async () => {
  if (here.connect === undefined) return
  authority = await here.connect()
  asked = []
})
afterEach(() => authority?.close())

type Word = readonly [authorised: boolean, challenge: boolean] | 'hang' | 'nonsense' | 'error'

/** Somebody who owns polkit's name and says what the test wants. */
const polkitSays = async (word: Word): Promise<void> => {
  authority.onCall((message) => {
    asked.push(message)
    if (message.member !== 'CheckAuthorization' || word === 'hang') return
    if (word === 'nonsense') authority.reply(message, 's', ['yes'])
    else if (word === 'error')
      authority.replyError(message, 'org.freedesktop.PolicyKit1.Error.Failed', 'broken')
    else authority.reply(message, '(bba{ss})', [[...word, []]])
  })
  await authority.callBus('RequestName', 'su', ['org.freedesktop.PolicyKit1', 4])
}
const create = (who: Identity): Promise<Answer> => {
  const request = { bases: [here.project], cwd: here.project, command: ['true'] }
  return pythonCall(here, who, { path: MANAGER_PATH, face: MANAGER.name }, 'CreateBranch', request)
}
const reload = (who: Identity): Promise<Answer> =>
  pythonCall(here, who, { path: MANAGER_PATH, face: MANAGER.name }, 'Reload')

describe('polkit', () => {
  check('decides where it runs: it can allow who is in no group, and refuse who is', async () => {
    const { outsider, developer } = WHO
    expect(await create(outsider)).toMatchObject({ error: 'AccessDenied' })
    await polkitSays([true, false])
    expect(await create(outsider)).not.toHaveProperty('error')
    expect(await reload(outsider)).not.toHaveProperty('error')
    expect(asked.map(({ body }) => body?.[1])).toEqual(['org.puzzled1.manage', 'org.puzzled1.administer'])
    // Who calls, by the name that the bus gave; python says of itself that it may not be interrupted by a question.
    expect(asked[0]?.body?.[0]).toMatchObject(['system-bus-name', expect.anything()])
    expect(asked[0]?.body?.[3]).toBe(0)
    await polkitSays([false, false])
    expect(await create(developer)).toMatchObject({ error: 'AccessDenied' })
  })

  check('is not asked about root, about looking, nor for who is inside a branch', async () => {
    await polkitSays([false, false])
    expect(await create(WHO.root)).not.toHaveProperty('error')
    expect((await here.puzzlectl(WHO.outsider, 'ls')).status).toBe(0)
    expect(asked).toEqual([])
    // The positive control; puzzlectl lets a person be asked.
    await here.puzzlectl(WHO.developer, 'run', '--', 'true')
    expect(asked[0]?.body?.[3]).toBe(1)
  })

  check.each([
    ['asks for a proof that nobody can give', [false, true], /prove who they are/],
    ['answers nonsense', 'nonsense', /may not manage/],
    ['fails', 'error', /polkit did not answer/],
  ] as const)('that %s refuses', async (_what, word, message) => {
    await polkitSays(word)
    expect(await create(WHO.developer)).toMatchObject({
      error: 'AccessDenied',
      message: expect.stringMatching(message),
    })
  })

  check('that hangs holds up its caller only, and refuses when it dies', async () => {
    await polkitSays('hang')
    const waiting = create(WHO.developer)
    await expect.poll(() => asked.length).toBe(1)
    expect((await here.puzzlectl(WHO.developer, 'ls')).status).toBe(0)
    await authority.close()
    expect(await waiting).toMatchObject({ error: 'AccessDenied' })
    // And once it is gone, groups count again.
    expect(await create(WHO.developer)).not.toHaveProperty('error')
  })

  check('that takes too long is told to stop asking', async () => {
    await polkitSays('hang')
    const daemon = await here.connect()
    const polkit = new Polkit(daemon, 200)
    const caller = { name: daemon.uniqueName }
    await expect(polkit.check(caller, 'manage')).rejects.toMatchObject({ code: 'access-denied' })
    await expect
      .poll(() => asked.map(({ member }) => member))
      .toEqual(['CheckAuthorization', 'CancelCheckAuthorization'])
    expect(asked[1]?.body?.[0]).toBe(asked[0]?.body?.[4])
    await daemon.close()
  })

  check('knows the actions that are asked about', async () => {
    const file = new URL('../../systemd/org.puzzled1.policy', import.meta.url)
    const known = [...readFileSync(file, 'utf8').matchAll(/<action id="org\.puzzled1\.(\w+)">/g)]
    expect(known.map(([, id]) => id).sort()).toEqual(['administer', 'approve', 'manage'])
  })
})
