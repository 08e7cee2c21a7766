// pure
import type { Verb } from '../verb.ts'
import { bashScript } from './bash.ts'
import { fishScript } from './fish.ts'
import { completedVerbs } from './words.ts'
import { zshScript } from './zsh.ts'

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const
export type Shell = keyof typeof SCRIPTS
export const SHELLS = Object.keys(SCRIPTS) as readonly Shell[]

/** A completion script: verbs, options, and for each place what stands there. */
export const completionScript = (verbs: readonly Verb[], shell: Shell): string =>
  SCRIPTS[shell](completedVerbs(verbs))
