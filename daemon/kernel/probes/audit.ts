import { setTimeout as delay } from 'node:timers/promises'
import { type AuditMessage, AuditStream, auditEnabled } from '../audit-stream.ts'
import type { Finding } from '../feature-text.ts'
import { KernelError } from '../ffi.ts'
import { landlockAbi } from '../landlock.ts'
import {
  AUDIT_SECCOMP,
  NR,
  SECCOMP_FILTER_FLAG_LOG,
  SECCOMP_RET_ERRNO,
  SECCOMP_SET_MODE_FILTER,
} from '../uapi/index.ts'
import { failedCall, op } from './calls.ts'
import { filterFor, noNewPrivileges } from './isolation.ts'

const PATIENCE_MILLIS = 500
/** The ABI with which Landlock began to speak to the audit system (Linux 6.15). */
const SPEAKING_ABI = 7

/** A filter refuses a call, and the kernel's record of it must be heard: one line in the log of whoever listens here. */
export async function probeKernelAudit(): Promise<Finding> {
  const stream = AuditStream.open()
  try {
    const failed = await failedCall(
      [],
      [
        noNewPrivileges(),
        op('seccomp', [SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_LOG, filterFor(SECCOMP_RET_ERRNO | 1)]),
        op('getppid', [], { expect: { errno: 'EPERM' } }),
      ],
    )
    if (failed !== undefined) return { level: 0, detail: failed }
    if (!(await isHeard(stream)))
      return {
        level: 0,
        detail: 'a refused call was not heard of: another network namespace, or errno not in actions_logged',
      }
  } finally {
    stream.close()
  }
  return withLandlock()
}

const isRecord = ({ type, text }: AuditMessage): boolean =>
  type === AUDIT_SECCOMP && text.includes(` syscall=${NR.getppid} `)

async function isHeard(stream: AuditStream): Promise<boolean> {
  for (let waited = 0; waited < PATIENCE_MILLIS; waited += 5) {
    if (stream.drain().some(isRecord)) return true
    await delay(5)
  }
  return false
}

async function withLandlock(): Promise<Finding> {
  const heard = 'the record of a refused call was heard'
  const silent = (why: string, remedy: string): Finding => ({
    level: 1,
    detail: `${heard}; ${why}`,
    restriction: 'What Landlock refuses is an errno for the agent and is not told as a denial.',
    remedy,
  })
  if (landlockAbi() < SPEAKING_ABI) return silent('Landlock does not speak yet', 'Boot Linux 6.15 or newer.')
  try {
    if (await auditEnabled()) return { level: 2, detail: `${heard}, and audit is on` }
    const remedy =
      'Boot with audit=1, or: auditctl -e 1. Every system call of the host costs a little more then.'
    return silent('audit is off, so Landlock says nothing', remedy)
  } catch (error) {
    if (!(error instanceof KernelError)) throw error
    return silent(
      `whether audit is on cannot be asked: ${error.errnoName}`,
      'Ask as root on the host itself.',
    )
  }
}
