import { generateKeyPairSync } from 'node:crypto'
import { expect, it } from 'vitest'
import { seal, unseal } from './envelope.ts'
import { HeadSigner, verifiesHead } from './signer.ts'

const signer = new HeadSigner(generateKeyPairSync('ed25519').privateKey)
const other = new HeadSigner(generateKeyPairSync('ed25519').privateKey)
const payload = Buffer.from('{"held":true}')
const envelope = seal('a/b', payload, signer)

it('gives back what was sealed', () => {
  const read: unknown = JSON.parse(JSON.stringify(envelope))
  expect(unseal(read, 'a/b', signer.publicKey)).toEqual(payload)
})

it.each([
  ['another payload', { ...envelope, payload: Buffer.from('{"held":false}').toString('base64') }],
  ['another type', { ...envelope, payloadType: 'a/c' }],
  ['another key', seal('a/b', payload, other)],
  ['no signature', { ...envelope, signatures: [] }],
  ['a malformed signature', { ...envelope, signatures: [{ keyid: '', sig: 'x' }] }],
  ['no envelope', 'text'],
  ['a hole', { ...envelope, signatures: [null] }],
])('refuses %s', (_what, value) => expect(unseal(value, 'a/b', signer.publicKey)).toBeNull())

it('cannot be taken for a tree head, nor a head for a document', () => {
  const sig = envelope.signatures[0]?.sig ?? ''
  expect(verifiesHead(signer.publicKey, payload.length, payload, sig)).toBe(false)
  const head = signer.sign(payload.length, payload)
  expect(unseal({ ...envelope, signatures: [{ keyid: '', sig: head }] }, 'a/b', signer.publicKey)).toBeNull()
})
