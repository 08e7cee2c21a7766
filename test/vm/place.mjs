// The folder of one run below the cache. Images are big, and whoever ends a run need not be kind: what a killed run left is
// found by its lock, which the kernel releases with the process, and removed by the next run.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, openSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs'
import { freemem } from 'node:os'
import { join } from 'node:path'

const MIB = 2 ** 20
/** The project's image, and what the guest writes to its root and data disks. */
const DISK_MIB = 6144
/** What the emulator takes beside the guest's memory: 512 MiB of translated code, and itself. */
const EMULATOR_MIB = 768
const GUEST_MIB = { least: 1024, most: 3072 }
/** Told from what else may lie where PUZZLED_VM_CACHE points. */
const OURS = 'puzzled-vm-run-'
/** A folder is made a moment before it is locked. */
const UNLOCKED_MS = 60_000

/** Runs `command` if nobody holds the lock of `folder`; answers whether it ran. */
const unlessLocked = (folder, ...command) =>
  spawnSync('flock', ['--nonblock', '--conflict-exit-code', '99', folder, ...command]).status !== 99

/** Makes the folder of this run, which is removed at the exit, by whatever signal a process can hear. */
export function runFolder(cache) {
  for (const name of readdirSync(cache).filter((each) => each.startsWith(OURS))) {
    const folder = join(cache, name)
    const seen = statSync(folder, { throwIfNoEntry: false })
    if (seen === undefined || Date.now() - seen.mtimeMs < UNLOCKED_MS) continue
    unlessLocked(folder, 'rm', '-rf', '--one-file-system', '--', folder)
  }
  const folder = mkdtempSync(join(cache, OURS))
  // The lock belongs to the open descriptor: it stays when flock ends, and goes when this process does.
  const descriptor = openSync(folder, 'r')
  const locked = spawnSync('flock', ['--nonblock', '3'], {
    stdio: ['ignore', 'ignore', 'ignore', descriptor],
  })
  if (locked.status !== 0) throw new Error(`Cannot lock ${folder}: ${locked.error ?? locked.status}`)
  process.on('SIGHUP', () => process.exit(129))
  process.on('SIGINT', () => process.exit(130))
  process.on('SIGTERM', () => process.exit(143))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A machine on a full disk or without memory would fail late, and as if the project did. */
export function requireRoom(cache) {
  const { bavail, bsize } = statfsSync(cache)
  const free = Math.floor((bavail * bsize) / MIB)
  if (free < DISK_MIB)
    throw new Error(`${cache} has ${free} MiB left and a machine needs ${DISK_MIB}: set PUZZLED_VM_CACHE`)
  if (guestMemory() < GUEST_MIB.least)
    throw new Error(`A machine needs ${GUEST_MIB.least + EMULATOR_MIB} MiB of free memory`)
}

/** MiB: what the tests of limits need, or what is free here and the cgroup of this process may have. */
export function guestMemory() {
  const left = Math.min(freemem(), process.constrainedMemory() || Number.POSITIVE_INFINITY)
  return Math.min(GUEST_MIB.most, Math.floor(left / MIB) - EMULATOR_MIB)
}
