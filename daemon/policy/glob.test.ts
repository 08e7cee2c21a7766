import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { globExpression } from './glob.ts'

/** What a pattern means, written as the regular expression that tries everything. */
function meaning(pattern: string): RegExp {
  let depth = 0
  const source = pattern.replace(/\*\*\/|\*\*|[\s\S]/g, (token, at: number) => {
    if (token === '**/') return at === 0 || pattern[at - 1] === '/' ? '(?:[^/]+/)*' : '.*\\/'
    if (token === '**') return '.*'
    if (token === '*') return '[^/]*'
    if (token === '?') return '[^/]'
    if (token === '{') depth++
    if (token === '{') return '(?:'
    if (token === '}' && depth-- > 0) return ')'
    if (token === '}') depth = 0
    if (token === ',' && depth > 0) return '|'
    return token.replace(/[\\^$.|+()[\]{}/]/g, '\\$&')
  })
  return new RegExp(`^(?:${source}${')'.repeat(depth)})(?:/.*)?$`, 's')
}

describe('the globs of a profile', () => {
  it.each([
    ['/a/**/b', '/a/b', true],
    ['/a/**/b', '/a/x/y/b', true],
    ['/a/**/b', '/a/xb', false],
    ['/a/*.{js,ts}', '/a/x.ts', true],
    ['/a/*.{js,ts}', '/a/b/x.ts', false],
    ['/**/*/{.git,.hg}/hooks', '/w/p/.git/hooks/pre-commit', true],
    ['/**/*/{.git,.hg}/hooks', '/.git/hooks', false],
    ['/a', '/a/below', true],
    ['/a', '/ab', false],
    ['/{a,b{c,d', '/bd', true],
    ['/a,b}', '/a,b}', true],
  ])('%s and %s: %s', (pattern, target, matches) => {
    expect(globExpression(pattern).test(target)).toBe(matches)
  })

  it('mean what the regular expression means that tries everything', () => {
    const letters = (...of: string[]) => fc.array(fc.constantFrom(...of), { maxLength: 9 })
    const patterns = letters('a', 'b', '/', '*', '**', '**/', '?', '{', ',', '}', '.', '+')
    const targets = letters('a', 'b', '/', '.', '+', ',', '}', '\n')
    fc.assert(
      fc.property(patterns, targets, (pattern, target) => {
        const [glob, text] = [pattern.join(''), target.join('')]
        expect(globExpression(glob).test(text)).toBe(meaning(glob).test(text))
      }),
      { numRuns: 5000 },
    )
  })

  it('are read to a depth that nobody writes, and refused beyond it', () => {
    const nested = (depth: number): string => `/${'{'.repeat(depth)}a${'}'.repeat(depth)}`
    expect(globExpression(nested(64)).test('/a')).toBe(true)
    for (const pattern of [nested(65), nested(100_000), `/${'{a,'.repeat(3500)}`])
      expect(() => globExpression(pattern)).toThrow(expect.objectContaining({ code: 'policy-invalid' }))
  })

  it('end on a name that was made to be tried in every way', () => {
    const name = `/${'a'.repeat(4000)}`
    for (const pattern of [
      '/*a*a*a*a*a*b',
      '/**a**a**a**a**a**b',
      `/${'{a,a}'.repeat(40)}b`,
      '/**/*/**/*/**/*b',
    ])
      expect(globExpression(pattern).test(name)).toBe(false)
  })
})
