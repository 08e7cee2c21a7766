import { afterEach, expect, it, vi } from 'vitest'
import { PuzzledError } from '../daemon/lib/errors.ts'
import { ForwardedSignals } from './signals.ts'

afterEach(() => vi.restoreAllMocks())

it('gives the terminal back before it ends at the second signal for an agent that is over', async () => {
  const log: string[] = []
  vi.spyOn(process, 'kill').mockImplementation((_, signal) => {
    log.push(`ends by ${signal}`)
    return true
  })
  const terminal = { isTTY: true, setRawMode: (raw: boolean) => void log.push(`raw ${raw}`) }
  vi.spyOn(process, 'stdin', 'get').mockReturnValue(terminal as unknown as typeof process.stdin)
  const signals = new ForwardedSignals({
    failed: () => expect.fail(),
    tooLate: () => void log.push('too late'),
  })
  signals.passTo(() => Promise.reject(new PuzzledError('wrong-state', 'It is over')))
  for (let each = 0; each < 2; each++) {
    process.emit('SIGTERM', 'SIGTERM')
    await new Promise(setImmediate)
  }
  signals.close()
  expect(log).toEqual(['too late', 'raw false', 'ends by SIGTERM'])
})
