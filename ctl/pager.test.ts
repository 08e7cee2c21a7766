import { describe, expect, it } from 'vitest'
import { pagerEnvironment } from './pager.ts'

describe('the environment of a pager', () => {
  const env = { PATH: '/bin', LESSOPEN: '||-lesspipe %s', LESSCLOSE: 'x' }

  it('has no preprocessor, which would be handed what an agent wrote', () =>
    expect(pagerEnvironment(env, 1000)).toEqual({ PATH: '/bin', LESS: 'FRX' }))

  it('lets root start nothing from the prompt', () =>
    expect(pagerEnvironment({ ...env, LESS: 'R' }, 0)).toEqual({ PATH: '/bin', LESS: 'R', LESSSECURE: '1' }))
})
