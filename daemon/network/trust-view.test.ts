import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { network, rule } from '../../test/fixtures/network-rules.ts'
import { BranchAuthority } from './authority.ts'
import { certificatesOf, javaStore } from './java-store.ts'
import { trustView } from './trust-view.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'puzzled-trust-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

const { certificate } = new BranchAuthority('trust')

it('adds the branch to every bundle that the host has, and names one', async () => {
  const bundle = join(directory, 'bundle.pem')
  writeFileSync(bundle, 'SYSTEM\n')
  const view = await trustView(certificate, network([rule('r')]), [join(directory, 'none'), bundle])
  expect(view.environment.SSL_CERT_FILE).toBe(bundle)
  expect(view.files.find(({ path }) => path === bundle)?.bytes.toString()).toBe(`SYSTEM\n${certificate}`)
})

it('a host without a bundle refuses what needs one, with the remedy', async () => {
  const view = (profile: ReturnType<typeof network>) =>
    trustView(certificate, profile, [join(directory, 'no')])
  for (const profile of [network([rule('r')]), network([], { mode: 'open-read' })])
    await expect(view(profile)).rejects.toMatchObject({
      code: 'feature-missing',
      hint: expect.stringContaining('ca-certificates'),
    })
  const plain = [
    network([rule('r', { ports: [80] })]),
    network([rule('r', { tls: 'tunnel', class: 'live' })]),
    network([rule('r', { class: 'deny' })]),
  ]
  for (const profile of plain) expect((await view(profile)).environment.SSL_CERT_FILE).toBeUndefined()
})

it('a store for Java names its certificates and proves itself', () => {
  const bytes = javaStore(certificatesOf(certificate + certificate))
  expect([bytes.readUInt32BE(0), bytes.readUInt32BE(4), bytes.readUInt32BE(8)]).toEqual([0xfeedfeed, 2, 2])
  const password = Buffer.from('changeit', 'utf16le').swap16()
  const hash = createHash('sha1').update(password).update('Mighty Aphrodite').update(bytes.subarray(0, -20))
  expect(bytes.subarray(-20)).toEqual(hash.digest())
})
