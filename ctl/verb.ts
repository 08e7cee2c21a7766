// pure
import type { Engine, EngineReader } from '../daemon/contract/engine.ts'
import type { Paint } from './render/paint.ts'

/** What a verb gets besides its own arguments. */
export interface VerbContext {
  /** Connects on first use; the command line closes it. */
  engine(): Promise<Engine>
  /** The same for verbs that only look. */
  reader(): Promise<EngineReader>
  readonly json: boolean
  readonly paint: Paint
  readonly paintErrors: Paint
  /** From `--state-dir`, or null for the default. */
  readonly stateDir: string | null
  /** With `hang`, lines that are wider than the terminal go on below, indented so far. */
  print(text: string | Uint8Array, hang?: number): Promise<void>
  printError(text: string, hang?: number): Promise<void>
}

export type OptionValues = Readonly<Record<string, unknown>>

/** A verb's module exports one function; the result is the exit status. */
export type VerbRun = (
  context: VerbContext,
  args: readonly string[],
  options: OptionValues,
) => Promise<number>

export interface Verb {
  readonly name: string
  readonly group: 'Run' | 'Decide' | 'Look' | 'Policy' | 'System'
  /** As commander writes it: `<id>`, `[command...]`. */
  readonly args?: string
  readonly summary: string
  readonly options?: readonly (readonly [flags: string, text: string, repeat?: 'repeat'])[]
  /** Everything after the first argument belongs to the command that is run. */
  readonly passThrough?: boolean
  readonly load: () => Promise<{ run: VerbRun }>
  readonly verbs?: readonly Verb[]
}

/** Accepted before the verb and after it. */
export const COMMON_OPTIONS = [
  ['--json', 'print one JSON document'],
  ['--state-dir <dir>', 'the store to use'],
  ['--host <machine>', 'do it there, over ssh: machine or user@machine'],
] as const

export const textOption = (options: OptionValues, name: string): string | null => {
  const value = options[name]
  return typeof value === 'string' ? value : null
}

export const listOption = (options: OptionValues, name: string): readonly string[] => {
  const value = options[name]
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : []
}

export const flagOption = (options: OptionValues, name: string): boolean => options[name] === true
