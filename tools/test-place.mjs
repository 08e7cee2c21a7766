// Where tests can work. They act as several users, so the checkout, Node and the temporary folder must be open to all
// of them, and a store needs a disk: the program refuses tmpfs and overlay. A checkout in a home directory, a strict
// umask, /tmp in memory and a container's root are all common; each is answered here, and told.
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const NOBODY = 65534
/** Magic numbers of statfs(2): tmpfs, ramfs, overlay, FUSE, NFS. */
const NO_DISK = [0x01021994, 0x858458f6, 0x794c7630, 0x65735546, 0x6969]
/** Sockets of tests lie some sixty bytes below it, and the name of a socket has room for 107. */
const LONGEST = 40
/** Set for the run in a copy: it must not look for another place. */
const MARK = 'PUZZLED_TEST_PLACE'

const asNobody = (test, path) =>
  spawnSync('/bin/sh', ['-c', `test -${test} "$0"`, path], { uid: NOBODY, gid: NOBODY, cwd: '/' }).status ===
  0

const isDisk = (folder) => existsSync(folder) && !NO_DISK.includes(statfsSync(folder).type)
const isOpen = (folder) => asNobody('x', folder)
const isShort = (folder) => Buffer.byteLength(folder) <= LONGEST

/** Whether every user can read the program; `test.mjs` stands for the files that git wrote, koffi for npm's. */
const isOpenCheckout = (root) =>
  ['tools/test.mjs', 'node_modules/koffi/package.json'].every((file) => asNobody('r', join(root, file)))

/**
 * Answers `{ root, node, env, remove }`: the checkout to test, the Node to test it with, and the environment. Without
 * root there are no other users to act as, and the place is what it is.
 */
export function testPlace(root) {
  const here = { root, node: process.execPath, env: {}, remove: () => undefined }
  if (process.geteuid() !== 0 || process.env[MARK] !== undefined || !asNobody('d', '/')) return here
  const undo = []
  const remove = () => {
    for (const step of undo.splice(0).reverse()) step()
  }
  process.once('exit', remove)
  const temporary = temporaryFolder(undo)
  const env = { [MARK]: '1', TMPDIR: temporary }
  if (isOpenCheckout(root) && isOpen(process.execPath)) return { ...here, env, remove }
  console.log(`Other users cannot read ${root} or ${process.execPath}: a copy in ${temporary} is tested`)
  const copy = copyOf(root, temporary, undo)
  return { ...copy, env: { ...env, PATH: `${dirname(copy.node)}:${process.env.PATH}` }, remove }
}

function temporaryFolder(undo) {
  const wanted = tmpdir()
  const found = [wanted, '/var/tmp', '/tmp'].find(
    (folder) => isShort(folder) && isDisk(folder) && isOpen(folder),
  )
  if (found === wanted) return found
  const chosen = found ?? newDisk(undo) ?? wanted
  console.log(
    `Temporary files are in ${chosen}: ${wanted} is not on a disk, closed to other users, or too long a name`,
  )
  return chosen
}

/** A disk in a file, for machines whose every folder is in memory or an overlay. Undefined where it cannot be mounted. */
function newDisk(undo) {
  const folder = mkdtempSync('/var/tmp/puzzled-disk-')
  undo.push(() => rmSync(folder, { recursive: true, force: true }))
  const [image, disk] = [join(folder, 'image'), join(folder, 'disk')]
  chmodSync(folder, 0o755)
  mkdirSync(disk)
  for (const [command, ...args] of [
    ['truncate', '-s', '16G', image],
    ['mkfs.ext4', '-q', '-F', '-E', 'lazy_itable_init=1', image],
    ['mount', '-o', 'loop,discard', image, disk],
  ])
    if (spawnSync(command, args, { stdio: 'ignore' }).status !== 0) return undefined
  undo.push(() => spawnSync('umount', ['--lazy', disk]))
  chmodSync(disk, 0o1777)
  return disk
}

/** The whole checkout, with git's part: tests ask it which files belong to the project. Owned by root, open to all. */
function copyOf(root, into, undo) {
  const folder = mkdtempSync(join(into, 'puzzled-open-'))
  undo.push(() => rmSync(folder, { recursive: true, force: true }))
  const copy = join(folder, 'checkout')
  const copied = spawnSync('cp', ['-r', '--preserve=mode,timestamps,links', '--reflink=auto', root, copy])
  if (copied.status !== 0) throw new Error(`Cannot copy ${root}: ${copied.stderr}`)
  spawnSync('chmod', ['-R', 'go+rX', folder])
  const node = join(folder, 'node')
  copyFileSync(process.execPath, node)
  chmodSync(node, 0o755)
  return { root: copy, node }
}
