import { describe, expect, it } from 'vitest'
import { signalAct } from './signals.ts'
import { checkDirectory, commandError, startError } from './start-error.ts'

const step = (name: string, call: string, errnoName: string) =>
  startError({ index: 13, total: 37, op: { name, call }, errnoName })

describe('a failed start', () => {
  it('names the step, the thing and the errno', () => {
    const error = step('create the overlay on "/home/u/app"', 'fsconfig', 'EINVAL')
    expect(error.message).toBe(
      'Cannot start agent: step 14 of 37, create the overlay on "/home/u/app": EINVAL',
    )
    expect(error.hint).toContain('doctor')
    expect(error.data).toMatchObject({ step: 14, of: 37, call: 'fsconfig', errno: 'EINVAL' })
  })

  it.each([
    ['execute init', 'execveat', 'E2BIG', 'too-large'],
    ['open the base "/x"', 'openat2', 'EACCES', 'access-denied'],
    ['open the base "/x"', 'openat2', 'ELOOP', 'base-invalid'],
    ['map the owners of the base of "/x"', 'mount_setattr', 'EINVAL', 'feature-missing'],
    ['let its clocks begin at 0', 'write', 'EPERM', 'feature-missing'],
    ['pivot to the new root', 'pivot_root', 'EBUSY', 'start-failed'],
  ])('%s: %s %s is %s', (name, call, errno, code) => expect(step(name, call, errno).code).toBe(code))

  it('says of a door that it was open', () => {
    expect(step('try to become root', 'setresuid', 'success').message).toContain('it succeeded and must not')
  })

  it('is 127 or 126 as in a shell', () => {
    expect(commandError('x', 'ENOENT').code).toBe('command-not-found')
    expect(commandError('x', 'EACCES').code).toBe('command-not-executable')
    expect(commandError('x', 'ENOEXEC').code).toBe('command-not-executable')
  })

  it.each([
    ['EAGAIN', 'pids'],
    ['ENOMEM', 'memory'],
    ['EMFILE', 'nofile'],
  ])('is no fault of the command when a limit is too low: %s', (errno, limit) => {
    const error = commandError('x', errno)
    expect([error.code, error.hint]).toEqual(['start-failed', expect.stringContaining(limit)])
  })
})

it('a working directory is in a base by its components', () => {
  const layers = [{ base: '/home/u/app' }]
  checkDirectory('/home/u/app', layers)
  checkDirectory('/home/u/app/deep', layers)
  for (const cwd of ['/home/u/app2', '/home/u', '/home/u/app/../x', '/home/u/app\0'])
    expect(() => checkDirectory(cwd, layers)).toThrow('is not in a base')
})

describe('signals by name', () => {
  it('have one meaning, however they are written', () => {
    expect(signalAct('sigterm')).toEqual(signalAct('TERM'))
    expect(signalAct('STOP')).toEqual({ kind: 'freeze' })
    expect(signalAct('KILL')).toEqual({ kind: 'kill' })
    expect(signalAct('HUP')).toMatchObject({ kind: 'deliver', number: 1, graceMillis: null })
  })

  it.each(['', 'SEGV', 'constructor', '9'])('do not include %j', (name) =>
    expect(() => signalAct(name)).toThrow('Unknown signal'),
  )
})
