// pure
import { FEATURE_NAMES, type FeatureName } from '../contract/features.ts'
import { PuzzledError } from '../lib/errors.ts'
import { type Finding, landlockRestriction } from './feature-text.ts'

/**
 * `PUZZLED_TEST_FEATURES=landlock:3,bpf-lsm:0` makes a host test as a poorer one. A level can only be lowered: what the
 * kernel lacks cannot be wished for.
 */
export type Overrides = ReadonlyMap<FeatureName, number>

export function parseOverrides(text: string | undefined): Overrides {
  const overrides = new Map<FeatureName, number>()
  for (const part of (text ?? '').split(',').filter((item) => item !== '')) {
    const match = /^([a-z0-9-]+):(\d{1,3})$/.exec(part)
    const name = FEATURE_NAMES.find((known) => known === match?.[1])
    if (match === null || name === undefined)
      throw new PuzzledError('usage', `PUZZLED_TEST_FEATURES has an unknown entry "${part}"`, {
        hint: `Write name:level, separated by commas; names are ${FEATURE_NAMES.join(', ')}.`,
      })
    overrides.set(name, Number(match[2]))
  }
  return overrides
}

export function applyOverride(name: FeatureName, finding: Finding, overrides: Overrides): Finding {
  const level = overrides.get(name)
  if (level === undefined || level >= finding.level) return finding
  const restriction = name === 'landlock' && level > 0 ? landlockRestriction(level) : finding.restriction
  return {
    level,
    detail: `as if it were ${level} (PUZZLED_TEST_FEATURES); really: ${finding.detail}`,
    remedy: 'unset PUZZLED_TEST_FEATURES',
    ...(restriction === undefined ? {} : { restriction }),
  }
}
