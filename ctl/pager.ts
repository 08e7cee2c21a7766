import { spawn } from 'node:child_process'
import { write } from './terminal.ts'
import type { VerbContext } from './verb.ts'

export interface Pager {
  print(text: string): Promise<void>
  close(): Promise<void>
}

/**
 * As git does it: a pager for a person at a terminal, plain output otherwise. What is printed has been made harmless
 * already; `less -R` only lets our own colours through.
 */
export function openPager(context: VerbContext, env: NodeJS.ProcessEnv = process.env): Pager {
  const command = env.PUZZLED_PAGER ?? env.PAGER ?? 'less'
  if (process.stdout.isTTY !== true || command === '' || command === 'cat')
    return { print: (text) => context.print(text), close: async () => undefined }
  const child = spawn('/bin/sh', ['-c', command], {
    stdio: ['pipe', 'inherit', 'inherit'],
    env: { ...env, LESS: env.LESS ?? 'FRX' },
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
