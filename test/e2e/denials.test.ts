import { describe, expect, it } from 'vitest'
import type { DenialRow } from '../../daemon/contract/denial.ts'
import { inProject, onBus } from './grounds.ts'
import { WHO } from './private-bus.ts'

const TRY = 'getent hosts nowhere.invalid'
const LIST = '/run/puzzled/denials.jsonl'
const TOLD = `${TRY}; until grep -q '"layer":"dns"' ${LIST}; do sleep 0.1; done`
const READ = `${TOLD}; cat ${LIST}`
/** Ways to a list that says something else. */
const FORGE = [
  'echo forged >> /run/puzzled/denials.jsonl',
  'rm -f /run/puzzled/denials.jsonl',
  'mv /run/puzzled /run/other',
  'touch /run/puzzled/mine',
  'chmod 666 /run/puzzled/denials.jsonl',
]

describe('what an agent was refused', () => {
  const { here } = inProject('all')

  it('is read by the agent while it runs, and shown to people afterwards', async () => {
    const { out } = await here.puzzlectl(
      'run',
      '--then',
      'hold',
      '--name',
      'told',
      '--',
      'sh',
      '-c',
      `${READ}; echo > x`,
    )
    const rows = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as DenialRow)
    expect(rows[0]).toMatchObject({ layer: 'dns', subject: 'nowhere.invalid' })
    const json = JSON.parse((await here.puzzlectl('show', 'told', '--json')).out) as { denials: DenialRow[] }
    expect(json.denials.slice(0, rows.length)).toEqual(rows)
    expect((await here.puzzlectl('show', 'told')).out).toMatch(/blocked {2}dns .*nowhere\.invalid/)
  })

  it.each(FORGE)('cannot be changed by it: %s', async (attempt) => {
    const script = `${TOLD}; (${attempt}) 2>/dev/null && echo done; cat ${LIST}`
    const { out } = await here.puzzlectl('run', '--', 'sh', '-c', script)
    expect(out).not.toContain('done')
    expect(JSON.parse(out.trim().split('\n')[0] ?? '')).toMatchObject({ layer: 'dns' })
  })

  it('tells what the policy denied', async () => {
    await here.puzzlectl('run', '--name', 'pipe', '--', 'mkfifo', 'pipe')
    const json = JSON.parse((await here.puzzlectl('show', 'pipe', '--json')).out) as { denials: DenialRow[] }
    expect(json.denials).toContainEqual(
      expect.objectContaining({ layer: 'policy', subject: expect.stringMatching(/\/pipe$/) }),
    )
  })
})

describe('through the daemon', () => {
  const { here, it } = onBus('all')

  it('the owner sees the same, and nobody else does', async () => {
    await here.puzzlectl(
      WHO.developer,
      'run',
      '--then',
      'hold',
      '--name',
      'told',
      '--',
      'sh',
      '-c',
      `${TRY}; echo > x`,
    )
    const shown = await here.puzzlectl(WHO.developer, 'show', 'told', '--json')
    expect((JSON.parse(shown.out) as { denials: DenialRow[] }).denials[0]).toMatchObject({ layer: 'dns' })
    expect((await here.puzzlectl(WHO.colleague, 'show', 'told')).status).toBe(68)
  })
})
