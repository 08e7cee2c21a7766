import { describe, expect, it } from 'vitest'
import { accountHome, agentHome } from './home.ts'

describe('the home of an account', () => {
  it.each([
    ['/home/u', '/home/u'],
    ['/home/u/', '/home/u'],
    ['/home//u/.', '/home/u'],
    ['/', '/'],
    ['//', '/'],
    ['', '/'],
    ['u', '/'],
    ['/dev', '/'],
    ['/proc/1/root', '/'],
    ['/devices', '/devices'],
  ])('%j is %j', (text, home) => expect(accountHome(text)).toBe(home))
})

describe('the home that an agent believes in', () => {
  it.each(['/', '/usr', '/bin', '/usr/sbin', '/usr/games', '/etc/thing', '/var/run/ircd'])(
    'is one of its own where the account has %s',
    (home) => expect(agentHome(home)).toBe('/home/agent'),
  )

  it.each(['/home/u', '/root', '/var/lib/postgresql', '/opt/app', '/usr/home/u', '/nonexistent'])(
    'is %s where the account has that',
    (home) => expect(agentHome(home)).toBe(home),
  )
})
