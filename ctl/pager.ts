import { spawn } from 'node:child_process'
import { personRights } from './person.ts'
import { write } from './terminal.ts'
import type { VerbContext } from './verb.ts'

export interface Pager {
  print(text: string | Uint8Array): Promise<void>
  close(): Promise<void>
}

/**
 * What is shown comes from an agent: `less` must hand it to no preprocessor (`LESSOPEN`), and as root it starts no
 * shells and editors from its prompt.
 */
export function pagerEnvironment(
  { LESSOPEN: _open, LESSCLOSE: _close, ...env }: NodeJS.ProcessEnv,
  euid: number,
): NodeJS.ProcessEnv {
  return { ...env, LESS: env.LESS ?? 'FRX', ...(euid === 0 ? { LESSSECURE: '1' } : {}) }
}

/**
 * As git does it: a pager for a person at a terminal, plain output otherwise. What is printed has been made harmless
 * already; `less -R` only lets our own colours through.
 */
export function openPager(context: VerbContext, env: NodeJS.ProcessEnv = process.env): Pager {
  const command = env.PUZZLED_PAGER ?? env.PAGER ?? 'less'
  if (process.stdout.isTTY !== true || command === '' || command === 'cat')
    return { print: (text) => context.print(text), close: async () => undefined }
  const person = personRights(env)
  const child = spawn('/bin/sh', ['-c', command], {
    ...person,
    stdio: ['pipe', 'inherit', 'inherit'],
    env: pagerEnvironment(person.env, person.uid ?? process.geteuid?.() ?? 0),
  })
  const ended = new Promise<void>((resolve) => {
    child.on('close', () => resolve())
    child.on('error', () => resolve())
  })
  // A person who quits the pager early has seen enough.
  child.stdin.on('error', () => undefined)
  return {
    print: (text) => write(child.stdin, text),
    close: async () => {
      child.stdin.end()
      await ended
    },
  }
}
