import { expect, it } from 'vitest'
import type { Provenance } from '../audit/provenance.ts'
import { provenanceFor } from './blame.ts'

const commit = (name: string, requester: number | null, ...paths: string[]): Provenance => ({
  ...{ commit: name, time: `day ${name.slice(1)}`, seq: 7, state: 'landed', branch: `branch of ${name}` },
  ...{ name: 'secret name', profile: 'standard', profileSha256: 'aa', requester, digest: 'dd' },
  ...{ command: ['secret', 'command'], exit: null, verdict: 'allow', policies: [], approvals: [] },
  requests: [],
  entries: paths.map((path) => ({ path, kind: 'modify', sha256: 'secret digest' })),
})
const mine = (uid: number): boolean => uid === 1000

it('tells a commit of somebody else without what it is, and only beside one of the own', () => {
  const found = [
    commit('c3', 2000, '/p/a', '/p/other'),
    commit('c2', 1000, '/p/a'),
    commit('c1', 2000, '/p/b'),
  ]
  const told = provenanceFor('/p', found, mine, 5)
  expect(
    told.map(({ commit: id, withheld, entries }) => [id, withheld, entries.map(({ path }) => path)]),
  ).toEqual([
    ['', true, ['/p/a']],
    ['c2', undefined, ['/p/a']],
  ])
  const text = JSON.stringify(told[0])
  for (const secret of ['secret', 'c3', '/p/other', '2000']) expect(text).not.toContain(secret)
  expect(told[0]?.time).toBe('day 3')
  // Who may see all branches is told all.
  expect(provenanceFor('/p', found, () => true, 5)).toEqual(found)
  expect(provenanceFor('/p', found, () => true, 1)).toEqual([found[0]])
})

it('does not say that a path is anybody else’s', () => {
  const refused = () => provenanceFor('/p/b', [commit('c1', 2000, '/p/b')], mine, 5)
  const unknown = () => provenanceFor('/p/b', [], mine, 5)
  expect(refused).toThrow('No commit on record that you may see touched "/p/b"')
  expect(unknown).toThrow('No commit on record that you may see touched "/p/b"')
  // One of which nobody knows whose it was is nobody's.
  expect(() => provenanceFor('/p/b', [commit('c1', null, '/p/b')], () => true, 5)).toThrow(/No commit/)
})

it('tells at most a thousand paths of one commit, and how many more there are', () => {
  const paths = Array.from({ length: 1500 }, (_, n) => `/p/${n}`)
  const [told] = provenanceFor('/p', [commit('c1', 1000, ...paths)], mine, 5)
  expect([told?.entries.length, told?.more]).toEqual([1000, 500])
})
