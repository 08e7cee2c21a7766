import { expect, it } from 'vitest'
import type { ProofReport } from '../../daemon/prove-host.ts'
import { plain } from './paint.ts'
import { proofText } from './proof.ts'
import { cellWidth } from './width.ts'

const report: ProofReport = {
  ...{ version: 1, product: '1.0.0', time: '2026-01-01T00:00:00.000Z', profile: 'offline', held: true },
  host: { kernel: '6.1', architecture: 'x64', node: 'v20', name: 'here' },
  layers: ['mounts', 'landlock', 'seccomp'],
  attacks: [
    {
      ...{ attack: 'userns', words: 'mount a filesystem in a user namespace of its own', result: 'EPERM' },
      ...{ control: 'OK', alone: {}, stoppedBy: ['landlock', 'seccomp', 'capabilities'], outcome: 'stopped' },
    },
  ],
  checks: [
    {
      ...{ check: 'fifo', words: 'leave a named pipe', outcome: 'stopped', detail: 'deny' },
      stoppedBy: 'changeset/special-file, unread, contents-partly-read',
    },
    {
      ...{ check: 'direct', words: 'connect to a service of the host without the proxy', outcome: 'stopped' },
      ...{ stoppedBy: 'network namespace', detail: '' },
    },
    {
      ...{ check: 'queue', words: 'send a write before the commit', outcome: 'not-verified', stoppedBy: '' },
      detail: 'the proxy did not answer',
    },
  ],
  notVerified: [],
}

it('is a table where it fits', () => {
  const text = proofText(report, plain, 160)
  expect(text).toContain(
    'leave a named pipe                                  stopped            changeset/special-file, unread, contents-partly-read  deny\n',
  )
  expect(proofText(report, plain)).toBe(text)
})

it('says below each attack what became of it on a screen of 80 columns', () => {
  const text = proofText(report, plain, 80)
  expect(text).toContain(`
stopped  mount a filesystem in a user namespace of its own
         EPERM: landlock seccomp capabilities
`)
  expect(text).toContain(`
stopped            leave a named pipe
                   changeset/special-file, unread, contents-partly-read (deny)
stopped            connect to a service of the host without the proxy
                   network namespace
not verified here  send a write before the commit
                   the proxy did not answer
`)
  for (const line of text.split('\n')) expect(cellWidth(line)).toBeLessThanOrEqual(80)
})
