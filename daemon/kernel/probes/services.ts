import { existsSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { BUNDLE_PATHS } from '../../contract/trust.ts'
import { errnoOf } from '../../lib/errors.ts'
import { BpfObject, bpfObjectFile, lookupElement } from '../bpf.ts'
import type { Finding } from '../feature-text.ts'
import { loadLibrary } from '../ffi.ts'
import { JOURNAL_SOCKET } from '../journald.ts'
import { AF_UNIX, SOCK_DGRAM } from '../uapi/index.ts'
import { failedCall, op } from './calls.ts'

/** Attaches a program to file_open and opens a file: the program must have counted it. */
export async function probeBpfLsm(): Promise<Finding> {
  const object = await BpfObject.load(bpfObjectFile('puzzle_probe'))
  try {
    object.attachLsm('puzzle_probe')
    readFileSync('/proc/self/stat')
    const calls = lookupElement(object.map('.bss'), Buffer.alloc(4), 8)?.readBigUInt64LE(0) ?? 0n
    return calls > 0n
      ? { level: 1, detail: 'a program on file_open was loaded, attached and called' }
      : { level: 0, detail: 'a program can be attached but is never called: bpf is not in lsm=' }
  } finally {
    object.close()
  }
}

/** Connecting tells whether somebody receives; nothing is written into the journal. */
export async function probeJournald(): Promise<Finding> {
  const address = Buffer.alloc(110)
  address.writeUInt16LE(AF_UNIX)
  address.write(JOURNAL_SOCKET, 2)
  const failed = await failedCall(
    [],
    [
      op('socket', [AF_UNIX, SOCK_DGRAM, 0], { store: 'socket' }),
      op('connect', [{ slot: 'socket' }, address, address.length], { name: `connect ${JOURNAL_SOCKET}` }),
    ],
  )
  if (failed !== undefined) return { level: 0, detail: failed }
  loadLibrary('libsystemd.so.0', 'libsystemd0')
  return { level: 1, detail: `${JOURNAL_SOCKET} receives; libsystemd.so.0 is there` }
}

/** Where the bus listens: the system's for root, the session's otherwise. */
export function busAddress(environment: NodeJS.ProcessEnv, uid: number): string {
  const given = uid === 0 ? environment.DBUS_SYSTEM_BUS_ADDRESS : environment.DBUS_SESSION_BUS_ADDRESS
  const path = /^unix:path=([^,;]+)/.exec(given ?? '')?.[1]
  if (path !== undefined) return path
  return uid === 0
    ? '/run/dbus/system_bus_socket'
    : `${environment.XDG_RUNTIME_DIR ?? `/run/user/${uid}`}/bus`
}

/** A peer that speaks D-Bus accepts our uid; the connection is closed again. Only one that hangs costs this long. */
function authenticated(path: string, milliseconds = 3000): Promise<string | undefined> {
  return new Promise((resolve) => {
    const uid = Buffer.from(String(process.geteuid?.() ?? 0)).toString('hex')
    const socket = connect(path)
    const end = (failure: string | undefined): void => {
      socket.destroy()
      resolve(failure)
    }
    socket.setTimeout(milliseconds, () => end(`${path} does not answer`))
    socket.once('error', (error) => end(`connect ${path}: ${errnoOf(error) ?? error.message}`))
    socket.once('connect', () => socket.write(`\0AUTH EXTERNAL ${uid}\r\n`))
    socket.once('data', (answer) =>
      end(answer.toString('latin1').startsWith('OK ') ? undefined : `${path} refused our uid`),
    )
  })
}

export async function probeDbus(): Promise<Finding> {
  const path = busAddress(process.env, process.geteuid?.() ?? 0)
  const failed = await authenticated(path)
  return failed === undefined ? { level: 1, detail: `${path} accepts us` } : { level: 0, detail: failed }
}

/** The manager's own socket answers root only. Starting a scope for a probe would be seen by everybody who watches units. */
export async function probeSystemdScope(): Promise<Finding> {
  if (!existsSync('/run/systemd/system')) return { level: 0, detail: 'systemd is not PID 1' }
  const uid = process.geteuid?.() ?? 0
  const path = uid === 0 ? '/run/systemd/private' : `/run/user/${uid}/systemd/private`
  const failed = await authenticated(path)
  if (failed !== undefined) return { level: 0, detail: failed }
  return { level: 1, detail: 'the manager answers; no scope was started for this check' }
}

/** The policy knows the daemon's domain, and is enforced. */
export function probeSelinux(): Finding {
  const file = '/sys/fs/selinux/enforce'
  if (!existsSync(file)) return { level: 0, detail: 'SELinux is not in lsm=, or selinuxfs is not mounted' }
  const enforcing = readFileSync(file, 'latin1').trim() === '1'
  const context = readFileSync('/proc/self/attr/current', 'latin1').replace('\0', '').trim()
  const mode = enforcing ? 'enforcing' : 'permissive'
  if (enforcing && context.includes(':puzzled_t:')) return { level: 2, detail: `enforcing, as ${context}` }
  return {
    level: 1,
    detail: `${mode}, as ${context}`,
    restriction: enforcing
      ? 'This process is not confined by the policy of puzzled.'
      : 'Denials are logged and not enforced.',
    remedy: enforcing ? 'make -C selinux install && systemctl restart puzzled' : 'setenforce 1',
  }
}

export function probeIma(): Finding {
  const file = '/sys/kernel/security/ima/runtime_measurements_count'
  if (!existsSync(file))
    return { level: 0, detail: 'IMA is not in this kernel, or securityfs is not mounted' }
  const count = Number(readFileSync(file, 'latin1'))
  if (count > 1) return { level: 1, detail: `${count} measurements` }
  return { level: 0, detail: 'nothing but the boot aggregate is measured' }
}

/** What programs trust is extended by mounting over the host's bundle: without one there is nothing to mount over. */
export function probeBundle(): Finding {
  const path = BUNDLE_PATHS.find((one) => existsSync(one))
  if (path === undefined)
    return { level: 0, detail: 'no bundle of certificate authorities where systems keep it' }
  const count = readFileSync(path, 'latin1').match(/-----BEGIN CERTIFICATE-----/g)?.length ?? 0
  if (count === 0) return { level: 0, detail: `${path} holds no certificate` }
  return { level: 1, detail: `${count} authorities in ${path}` }
}
