import { createContext, runInContext } from 'node:vm'
import { expect, it } from 'vitest'
import { sealPrototypes } from './seal.ts'

/** What a careless merge of somebody's document does. */
const POLLUTE = `
  const merge = (into, from) => {
    for (const [key, value] of Object.entries(from))
      if (value !== null && typeof value === 'object') merge((into[key] ??= {}), value)
      else into[key] = value
  }
  const refused = []
  for (const text of ['{"__proto__":{"allow":true}}', '{"constructor":{"prototype":{"allow":true}}}'])
    try { merge({}, JSON.parse(text)) } catch (error) { refused.push(error.message) }
  ;({}).allow === true`

it('control: in an ordinary world a document can give every object a property', () => {
  expect(runInContext(POLLUTE, createContext())).toBe(true)
})

it('sealed prototypes take nothing from a document, and objects are what they were', () => {
  const world = createContext()
  sealPrototypes(runInContext('globalThis', world))
  expect(runInContext(POLLUTE, world)).toBe(false)
  expect(
    runInContext(`({}).__proto__ === undefined && { __proto__: null } instanceof Object === false`, world),
  ).toBe(true)
  const own = `const o = {}; o.toString = () => 'own'; class E extends Error {}; new E('x').message + o`
  expect(runInContext(own, world)).toBe('xown')
})
