import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { packageRoot } from '../lib/assets.ts'
import { draftProfile } from './agents-md.ts'
import { narrow } from './inherit.ts'
import { parseProfile } from './profile.ts'
import { ProfileStore } from './profiles.ts'

const standard = await new ProfileStore({ directories: [join(packageRoot(), 'policies/profiles')] }).describe(
  'standard',
)
const draft = (text: string) => {
  const { yaml } = draftProfile([{ path: 'AGENTS.md', text }], 'project', 'standard')
  return narrow(standard, parseProfile(yaml, 'draft.yaml')).profile
}

describe('a draft from instructions', () => {
  it('takes what is forbidden', () => {
    const profile = draft(
      '# Rules\n\n- Never edit `src/generated/`.\n- Ask before changing `db/migrations`.\n- Do not use the network.\n- Never delete files.\n',
    )
    expect(profile.gate.denyPaths).toEqual([
      { path: '/**/src/generated', why: 'AGENTS.md:3 says: Never edit `src/generated/`.' },
    ])
    expect(profile.gate.holdPaths.map(({ path }) => path)).toEqual(['/**/db/migrations'])
    expect(profile.network).toMatchObject({ mode: 'none', rules: [] })
    expect(profile.gate.maxDeletions).toBe(0)
  })

  it('takes nothing that allows, and nothing out of code', () => {
    const profile = draft(
      'You may edit `src/`.\nAlways use the network.\n```\nnever edit `x/y`\n```\nRun as root with `sudo`.\n',
    )
    expect({ ...profile, name: '', description: '' }).toEqual({
      ...standard.profile,
      name: '',
      description: '',
    })
  })

  it('only narrows, whatever the file says', () => {
    const words = fc.constantFrom(
      'never',
      'edit',
      'ask before changing',
      'the network',
      'read-only',
      'repository',
      '`../x`',
      '`a/b`',
      '`/**`',
      '`a: b`',
      'delete',
      '"',
      "'",
      ': ',
      '#',
      '|',
      '\u202e',
      '\n',
      '- ',
    )
    fc.assert(
      fc.property(fc.array(fc.oneof(words, fc.string({ unit: 'binary' })), { maxLength: 40 }), (parts) => {
        expect(() => draft(parts.join(' '))).not.toThrow()
      }),
      { numRuns: 300 },
    )
  })
})
