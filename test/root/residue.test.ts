import { execFileSync, spawn } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { needs, program, root, systemd } from '../tier/needs.ts'
import { residue, takeStock } from '../tier/residue.ts'

const check = needs(root)

/** The guard itself runs behind each of these: what is shown as residue here is gone again at the end. */
check('a mount that stays is residue', () => {
  const before = takeStock()
  const target = join(tmpdir(), 'mounted')
  mkdirSync(target)
  execFileSync('mount', ['-t', 'tmpfs', 'none', target])
  const found = residue(before, takeStock())
  execFileSync('umount', [target])
  rmdirSync(target)
  expect(found.mounts).toEqual([expect.stringContaining(`on ${target} type tmpfs`)])
  expect(found.files).toEqual(['mounted'])
})

check('a network namespace with a name is residue', () => {
  const before = takeStock()
  execFileSync('ip', ['netns', 'add', 'puzzled-residue'])
  const found = residue(before, takeStock())
  execFileSync('ip', ['netns', 'delete', 'puzzled-residue'])
  execFileSync('umount', ['/run/netns'])
  expect(found.namespaces).toContain('puzzled-residue')
})

needs(root, program('nft'))('a table is residue', () => {
  const before = takeStock()
  execFileSync('nft', ['add', 'table', 'inet', 'puzzled_residue'])
  const found = residue(before, takeStock())
  execFileSync('nft', ['delete', 'table', 'inet', 'puzzled_residue'])
  expect(found.tables).toEqual(['table inet puzzled_residue'])
})

const noSystemd = systemd === undefined ? 'needs a cgroup hierarchy that systemd does not own' : undefined
needs(root, noSystemd)('a cgroup is residue, and so is a process in it that is not our child', async () => {
  const before = takeStock()
  const point = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes(' - cgroup2 '))
    .at(-1)
    ?.split(' ')[4]
  const cgroup = `${point}/residue`
  mkdirSync(cgroup)
  const orphan = execFileSync('sh', ['-c', 'sleep 1000 >/dev/null 2>&1 & echo $!'], {
    encoding: 'utf8',
  }).trim()
  writeFileSync(`${cgroup}/cgroup.procs`, orphan)
  const found = residue(before, takeStock())
  process.kill(Number(orphan))
  while (readFileSync(`${cgroup}/cgroup.events`, 'utf8').includes('populated 1')) await sleep(10)
  rmdirSync(cgroup)
  expect(found.cgroups).toEqual(['residue'])
  expect(found.processes).toEqual([`${orphan} sleep`])
})

check('a descriptor, a child and a file that stay are residue', async () => {
  const before = takeStock()
  const descriptor = openSync('/proc/self/status', 'r')
  const server = createServer().listen(join(tmpdir(), 'socket'))
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  writeFileSync(join(tmpdir(), 'file'), '')
  const found = residue(before, takeStock())
  closeSync(descriptor)
  server.close()
  child.kill()
  rmSync(join(tmpdir(), 'file'))
  await ended
  expect(found.descriptors?.join()).toContain('/status')
  expect(found.descriptors?.join()).toContain('socket:')
  expect(found.processes).toEqual([expect.stringContaining(String(child.pid))])
  expect(found.files).toEqual(expect.arrayContaining(['file', 'socket']))
})

check('a room has its own mounts and its own network, with a loopback that is up', () => {
  const of = (pid: string, kind: string): string =>
    execFileSync('readlink', [`/proc/${pid}/ns/${kind}`], { encoding: 'utf8' })
  for (const kind of ['mnt', 'net']) expect(of('self', kind)).not.toBe(of(String(process.ppid), kind))
  expect(readFileSync('/proc/net/if_inet6', 'utf8').trim().split('\n')).toHaveLength(1)
  expect(tmpdir()).toMatch(/puzzled-room-\w{6}$/)
})
