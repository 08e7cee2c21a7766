import { execFileSync, spawn } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { needs, root } from '../tier/needs.ts'
import { type Workplace, workplace } from './cli.ts'

const check = needs(root)
const PROGRAM = new URL('../../dist/puzzlectl.js', import.meta.url).pathname
let here: Workplace
beforeAll(() => {
  here = workplace()
})
afterAll(() => here.remove())

interface Proof {
  held: boolean
  attacks: {
    attack: string
    outcome: string
    stoppedBy: string[]
    control: string
    alone: Record<string, string>
  }[]
  checks: { check: string; outcome: string }[]
  notVerified: { what: string; why: string }[]
}

const proofs = new Map<string, Proof>()
/** As on a host with these features; each is proved once. */
async function proofWith(features: string): Promise<Proof> {
  const known = proofs.get(features)
  if (known !== undefined) return known
  const env = { PATH: process.env.PATH, HOME: '/root', PUZZLED_TEST_FEATURES: features }
  const words = [PROGRAM, 'prove', '--state-dir', here.state, '--json']
  const child = spawn(process.execPath, words, { cwd: '/', env, stdio: ['ignore', 'pipe', 'inherit'] })
  const proof = JSON.parse(await text(child.stdout)) as Proof
  proofs.set(features, proof)
  return proof
}

const rooms = (): string[] =>
  ['/var/lib', '/var/tmp'].flatMap((place) =>
    readdirSync(place).filter((name) => name.startsWith('puzzled-prove-')),
  )

describe('puzzlectl prove', () => {
  check('proves this host, signs what it found, and leaves nothing', async () => {
    const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
    const before = rooms()
    const report = join(here.project, 'report.json')
    const ran = await here.puzzlectl('prove', '--json', '--report', report)
    expect([ran.status, ran.err]).toEqual([0, ''])
    const proof = JSON.parse(ran.out) as Proof
    expect(proof.held).toBe(true)
    expect(proof.attacks.length).toBe(12)
    for (const { attack, outcome, control, stoppedBy } of proof.attacks)
      expect([attack, outcome, control, stoppedBy.length > 0]).toEqual([attack, 'stopped', 'OK', true])
    // What is not verified is told by name, not left out.
    const unverified = proof.checks.filter(({ outcome }) => outcome !== 'stopped')
    expect(unverified.every(({ outcome }) => outcome === 'not-verified')).toBe(true)
    expect(proof.notVerified.length).toBeGreaterThanOrEqual(unverified.length)
    expect(rooms()).toEqual(before)
    expect(readFileSync('/proc/self/mountinfo', 'utf8')).toBe(mounts)

    const shown = await here.puzzlectl('prove', '--verify', report)
    expect([shown.status, shown.out]).toEqual([0, expect.stringContaining('The signature is good.')])
    const forged = JSON.parse(readFileSync(report, 'utf8')) as { payload: string }
    const payload = Buffer.from(forged.payload, 'base64').toString().replace('stopped', 'escaped')
    writeFileSync(report, JSON.stringify({ ...forged, payload: Buffer.from(payload).toString('base64') }))
    const refused = await here.puzzlectl('prove', '--verify', report)
    expect([refused.status, refused.err]).toEqual([74, expect.stringContaining('signature')])
    // A report is never overwritten.
    expect((await here.puzzlectl('prove', '--report', report)).status).toBe(2)
  })

  for (const feature of ['landlock', 'seccomp', 'netns'] as const)
    check(`on a host without ${feature} changes exactly the cells of that layer`, async () => {
      const whole = await proofWith('')
      const poorer = await proofWith(`${feature}:0`)
      const layer = feature === 'netns' ? 'network' : feature
      for (const [row, was] of whole.attacks.entries()) {
        const { attack, control } = was
        const stoppedBy = was.stoppedBy.filter((one) => one !== layer)
        expect(poorer.attacks[row]).toMatchObject({
          ...{ attack, control, stoppedBy },
          alone: { ...was.alone, [layer]: control },
          outcome: stoppedBy.length === 0 ? 'escaped' : 'stopped',
        })
      }
      // Without Landlock agents start all the same; what the profile requires is told, never passed over. What this host
      // has not at all (a bus, a store) cannot be tried here either way.
      const isRequired = (was: Proof['checks'][number]): boolean =>
        feature !== 'landlock' && was.outcome !== 'not-verified'
      for (const [row, was] of whole.checks.entries())
        expect(poorer.checks[row]).toEqual(
          isRequired(was)
            ? { ...was, outcome: 'not-verified', stoppedBy: '', detail: expect.stringContaining(feature) }
            : was,
        )
      const told = poorer.notVerified.find(({ what }) => what === `what ${feature} holds`)
      expect(told?.why).toContain(`as if it were 0`)
      expect(whole.notVerified.some(({ what }) => what === `what ${feature} holds`)).toBe(false)
    })

  check('is for root', () => {
    const other = ['--reuid=65534', '--regid=65534', '--clear-groups', process.execPath, PROGRAM, 'prove']
    expect(() => execFileSync('setpriv', other, { stdio: 'pipe' })).toThrow(/needs root/)
  })
})
