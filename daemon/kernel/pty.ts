import { closeSync, fchownSync } from 'node:fs'
import { syscall } from './ffi.ts'
import { mountDetached } from './mount.ts'
import { openat2 } from './paths.ts'
import {
  MOUNT_ATTR_NOEXEC,
  MOUNT_ATTR_NOSUID,
  NR,
  O_CLOEXEC,
  O_NOCTTY,
  O_RDWR,
  TIOCGPTPEER,
  TIOCSPTLCK,
  TIOCSWINSZ,
} from './uapi/index.ts'

/** A devpts instance of one agent, mounted nowhere yet; the mount is moved into the agent's root. */
export function mountTerminals(): number {
  return mountDetached({
    type: 'devpts',
    options: [['newinstance'], ['ptmxmode', '0666'], ['mode', '0620']],
    attributes: MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
  })
}

export interface Terminal {
  /** The daemon's end. */
  readonly master: number
  /** The agent's end: its number in the agent's own devpts, so that `tty` and `ttyname` work inside. */
  readonly slave: number
}

/** Opens the first free terminal of a devpts mount. The slave belongs to the agent, as after a login. */
export function openTerminal(terminals: number, owner: { uid: number; gid: number }): Terminal {
  const master = openat2(terminals, 'ptmx', O_RDWR | O_NOCTTY)
  try {
    const unlock = Buffer.alloc(4)
    // SAFETY: TIOCSPTLCK reads one int, which lives until the call returns.
    syscall('ioctl TIOCSPTLCK', NR.ioctl, master, TIOCSPTLCK, unlock)
    // SAFETY: the argument of TIOCGPTPEER is a word of open flags; no name is looked up, so nothing can stand in its way.
    const slave = syscall('ioctl TIOCGPTPEER', NR.ioctl, master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC)
    fchownSync(slave, owner.uid, owner.gid)
    return { master, slave }
  } catch (error) {
    closeSync(master)
    throw error
  }
}

/** Tells the terminal its size; the foreground process group gets SIGWINCH. */
export function resizeTerminal(master: number, columns: number, rows: number): void {
  const size = Buffer.alloc(8)
  size.writeUInt16LE(clamp(rows), 0)
  size.writeUInt16LE(clamp(columns), 2)
  // SAFETY: TIOCSWINSZ reads a struct winsize of four 16-bit words.
  syscall('ioctl TIOCSWINSZ', NR.ioctl, master, TIOCSWINSZ, size)
}

const clamp = (cells: number): number => Math.min(Math.max(Math.trunc(cells) || 1, 1), 0x7fff)
