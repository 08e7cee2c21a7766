import { describe, expect, it } from 'vitest'
import { defaultConfig } from './config.ts'
import { parseConfig } from './config-schema.ts'

describe('puzzled.yaml', () => {
  it('has a default for everything', () => {
    expect(parseConfig('', 'f')).toEqual(defaultConfig())
    expect(defaultConfig()).toMatchObject({
      state_dir: '/var/lib/puzzled',
      bus: 'system',
      retention: { commits: 100, age: 30 * 86_400, bytes: 10 * 1024 ** 3 },
    })
  })

  it('reads durations and sizes', () => {
    const config = parseConfig('retention:\n  age: 12h\n  bytes: 500M\n', 'f')
    expect(config.retention).toEqual({ commits: 100, age: 43_200, bytes: 500 * 1024 ** 2 })
  })

  it.each([
    ['statedir: /x\n', /^f:1:1: statedir: /],
    ['state_dir: relative\n', /^f:1:12: state_dir: /],
    ['retention:\n  comits: 3\n', /^f:2:3: retention\.comits: /],
    ['retention:\n  age: soon\n', /^f:2:8: retention\.age: .*duration/],
    ['bus: [', /^f:1:7: /],
    ['bus: system\nbus: session\n', /^f:2:1: /],
  ])('refuses %j with its place', (text, message) => expect(() => parseConfig(text, 'f')).toThrow(message))
})
