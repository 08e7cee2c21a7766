import { closeSync, openSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { pidfdOpen } from '../../daemon/kernel/pidfd.ts'
import { type Question, type SeccompListener, takeListener } from '../../daemon/kernel/seccomp-notify.ts'
import { roundsOf } from '../threats/counts.ts'
import { needs, program, root } from '../tier/needs.ts'
import { attack, attackFolder, parseReport, startOutside } from './attack.ts'

const check = needs(root, program('gcc'))
const { rounds: ROUNDS, timeout } = roundsOf('PUZZLED_ESCAPE_ROUNDS')
const EACCES = 13
const AT_PATH = 1

type Supervisor = (listener: SeccompListener, question: Question, allowed: string) => void

/** Judges the string and lets the kernel read it again: what must never be done. */
const naive: Supervisor = (listener, question, allowed) => {
  const path = listener.readString(question, question.args[AT_PATH] ?? 0n)
  if (path?.toString() === allowed) listener.letContinue(question.id)
  else if (path !== undefined) listener.refuse(question.id, EACCES)
}

/** Judges a copy and opens that copy itself. */
const careful: Supervisor = (listener, question, allowed) => {
  const path = listener.readString(question, question.args[AT_PATH] ?? 0n)
  if (path?.toString() !== allowed) {
    if (path !== undefined) listener.refuse(question.id, EACCES)
    return
  }
  const descriptor = openSync(path, 'r')
  listener.answerWithDescriptor(question.id, descriptor)
  closeSync(descriptor)
}

async function race(supervisor: Supervisor, rounds: number): Promise<Record<string, number>> {
  const [allowed, secret] = [join(attackFolder(), 'harmless'), join(attackFolder(), 'secret!!')]
  writeFileSync(allowed, 'harmless')
  writeFileSync(secret, 'secret')
  const { child, output, ended } = startOutside([attack('race'), allowed, secret, String(rounds)])
  while (!output().includes('\n')) await sleep(5)
  const number = Number(parseReport(output()).listener)
  const pidfd = pidfdOpen(child.pid ?? 0)
  const listener = takeListener(pidfd, number)
  closeSync(pidfd)
  let asked = 0
  const silent = new Promise<void>((resolve) =>
    listener.listen((question) => {
      asked++
      supervisor(listener, question, allowed)
    }, resolve),
  )
  child.stdin?.end('\n')
  await ended
  await silent
  listener.close()
  const counts = Object.entries(parseReport(output())).map(([name, count]) => [name, Number(count)])
  return { ...Object.fromEntries(counts), asked }
}

check('S45 control: a supervisor that lets the kernel read the path again is betrayed', async () => {
  let wrong = 0
  for (let attempt = 0; attempt < 20 && wrong === 0; attempt++) wrong += (await race(naive, 1000)).wrong ?? 0
  expect(wrong).toBeGreaterThan(0)
})

check('S45: a supervisor that opens its own copy never hands out anything else', { timeout }, async () => {
  const counts = await race(careful, ROUNDS)
  expect(counts).toMatchObject({ wrong: 0, asked: ROUNDS })
  expect(counts.right).toBeGreaterThan(0)
  expect(counts.refused).toBeGreaterThan(0)
})

check('S45: the answer to a question whose process was killed goes nowhere', async () => {
  const path = join(attackFolder(), 'harmless')
  writeFileSync(path, '')
  const { child, output, ended } = startOutside([attack('race'), path, path, '1'])
  while (!output().includes('\n')) await sleep(5)
  const pidfd = pidfdOpen(child.pid ?? 0)
  const listener = takeListener(pidfd, Number(parseReport(output()).listener))
  closeSync(pidfd)
  const asked = new Promise<Question>((resolve) => listener.listen(resolve))
  child.stdin?.end('\n')
  const question = await asked
  expect(listener.stands(question.id)).toBe(true)
  expect(readlinkSync(`/proc/${question.pid}/exe`)).toContain('race')
  child.kill('SIGKILL')
  await ended
  expect(listener.stands(question.id)).toBe(false)
  expect(listener.letContinue(question.id)).toBe(false)
  expect(listener.readString(question, question.args[AT_PATH] ?? 0n)).toBeUndefined()
  listener.close()
})
