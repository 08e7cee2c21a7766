// Boots one throw-away virtual machine and gives back its job's output and status. Emulated (TCG): KVM of a rented
// machine often runs only its owner's kernels, and the tests must not depend on it.
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { guestMemory } from './place.mjs'
import { saveMachine } from './qmp.mjs'

/** Exit statuses that are about the machine and not about the job. */
export const STATUS = { timeout: 124, died: 125 }

const LSM = 'landlock,lockdown,yama,integrity,selinux,bpf'

/**
 * The guest reads the host's counter. A kernel that is left to measure it while the host is busy can be wrong by a factor
 * of forty, and then every time limit in the guest ends early.
 */
function tscFrequency() {
  const megahertz = /^cpu MHz\s*:\s*([\d.]+)/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1]
  return megahertz === undefined ? [] : [`tsc_early_khz=${Math.round(Number(megahertz) * 1000)}`]
}

/**
 * `options`: cache, dir (of the run), kernel, project (disk image), data (disk image; throw-away unless `keepData`), job (shell text),
 * limit (seconds), shell, init, enforcing, append, memory (MiB). The callbacks `stdout` and `stderr` receive what the job
 * prints, `console` what the kernel prints. With `rests`, the job waits for a line on the port "go": `save` keeps the
 * machine as it is then, and `saved` (the file) begins another one there, with `line`.
 */
export class Machine {
  #options
  #dir
  #child
  #servers = []
  #sockets = {}
  #timedOut = false

  constructor(options) {
    this.#options = options
    this.#dir = mkdtempSync(join(options.dir, 'run-'))
  }

  /** Runs the job to its end and answers its status, or one of STATUS. */
  async run() {
    const { limit, stdout, stderr, shell, line } = this.#options
    const job = join(this.#dir, 'job')
    writeFileSync(job, this.#options.job ?? '')
    truncateSync(job, Math.ceil((this.#options.job?.length ?? 0) / 65536 + 1) * 65536)
    let status = ''
    await this.#port('out', (chunk) => stdout?.(chunk))
    await this.#port('err', (chunk) => stderr?.(chunk))
    await this.#port('status', (chunk) => {
      status += chunk
    })
    if (this.#options.rests) {
      await this.#port('monitor', () => undefined)
      await this.#port('go', () => undefined)
      // Heard when the guest asks for it.
      if (line !== undefined) this.#sockets.go.then((socket) => socket.write(`${line}\n`))
    }
    const ended = this.#start(job)
    const timer = setTimeout(() => {
      this.#timedOut = true
      this.cut()
    }, limit * 1000)
    const how = await ended
    clearTimeout(timer)
    for (const server of this.#servers) server.close()
    const answered = /^\d+\n/.test(status)
    const code = answered ? Number(status) : this.#timedOut ? STATUS.timeout : STATUS.died
    const report = answered || shell ? '' : this.#report(how)
    rmSync(this.#dir, { recursive: true, force: true })
    return { code, report }
  }

  /** Ends the machine as a power cut does: what its kernel had not written is lost. */
  cut() {
    this.#child?.kill('SIGKILL')
  }

  /** Keeps the memory and the devices of a machine that rests in a file, and ends it. */
  async save(file) {
    await saveMachine(await this.#sockets.monitor, file)
    this.cut()
  }

  /** A port of the guest, or QEMU's monitor, read through a socket that QEMU connects to. */
  #port(name, receive) {
    let connected
    this.#sockets[name] = new Promise((resolve) => {
      connected = resolve
    })
    const server = createServer((socket) => {
      socket.on('data', receive).on('error', () => socket.destroy())
      connected(socket)
    })
    this.#servers.push(server)
    return new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen(join(this.#dir, name), resolve)
    })
  }

  #start(job) {
    const { cache, shell, console: onConsole } = this.#options
    const tools = join(cache, 'tools')
    const libraries = ['usr/lib/x86_64-linux-gnu', 'lib/x86_64-linux-gnu'].map((path) => join(tools, path))
    // A run that is killed must not leave its machine behind: the kernel ends it with this process.
    const tied = ['--pdeathsig', 'KILL', '--', join(tools, 'usr/bin/qemu-system-x86_64')]
    const child = spawn('setpriv', [...tied, ...this.#arguments(job, tools)], {
      stdio: shell ? 'inherit' : ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, LD_LIBRARY_PATH: libraries.join(':'), TMPDIR: this.#dir },
    })
    this.#child = child
    const cut = () => this.cut()
    process.once('exit', cut)
    child.once('close', () => process.off('exit', cut))
    if (onConsole !== undefined) child.stdout?.on('data', onConsole)
    let log = ''
    if (onConsole === undefined) child.stdout?.resume()
    child.stderr?.on('data', (chunk) => {
      log += chunk
    })
    return new Promise((resolve) => {
      child.once('error', (error) => resolve(String(error)))
      child.once('close', (code, signal) => resolve(`${log}QEMU ended with ${code ?? signal}`))
    })
  }

  #arguments(job, tools) {
    const { cache, kernel, project, data, keepData, shell, rests, saved, memory } = this.#options
    const root = join(cache, `root-${kernel}.ext4`)
    const disks = [
      ['root', root, 'raw', true],
      ['project', project, 'raw', true],
      ['job', job, 'raw', true],
      ['data', data, 'raw', !keepData],
    ]
    const ports = ['out', 'err', 'status', ...(rests ? ['go'] : [])]
    const socket = (name) => `socket,id=${name},path=${join(this.#dir, name)}`
    const boot = join(cache, `kernel-${kernel}`)
    return [
      ...['-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot'],
      ...['-L', join(tools, 'usr/share/qemu'), '-L', join(tools, 'usr/share/seabios')],
      ...['-machine', 'q35', '-accel', 'tcg,thread=multi,tb-size=512', '-cpu', 'Nehalem-v1', '-smp', '2'],
      ...[
        '-m',
        String(memory ?? guestMemory()),
        '-kernel',
        join(boot, 'vmlinuz'),
        '-initrd',
        join(boot, 'initrd.img'),
      ],
      ...['-append', this.#commandLine(), '-device', 'virtio-rng-pci', '-device', 'virtio-serial-pci'],
      ...(shell ? ['-serial', 'mon:stdio'] : this.#console()),
      // A full disk of the host is an error inside: QEMU would stop the machine and wait for somebody.
      ...disks.flatMap(([name, file, format, snapshot]) => [
        ...[
          '-drive',
          `if=none,id=${name},file=${file},format=${format},cache=unsafe,snapshot=${snapshot ? 'on' : 'off'},werror=report`,
        ],
        ...['-device', `virtio-blk-pci,drive=${name},serial=${name}`],
      ]),
      ...ports.flatMap((name) => [
        ...['-chardev', socket(name)],
        ...['-device', `virtserialport,chardev=${name},name=${name}`],
      ]),
      ...(rests ? ['-chardev', socket('monitor'), '-mon', 'chardev=monitor,mode=control'] : []),
      ...(saved === undefined ? [] : ['-incoming', `exec:cat '${saved}'`]),
    ]
  }

  #console() {
    const file = join(this.#dir, 'console')
    return this.#options.console === undefined ? ['-serial', `file:${file}`] : ['-serial', 'stdio']
  }

  #commandLine() {
    const { enforcing, init, shell, append } = this.#options
    const words = [
      ...[
        'console=ttyS0',
        'root=/dev/vda',
        'quiet',
        'loglevel=4',
        'panic=-1',
        'mitigations=off',
        'tsc=reliable',
        ...tscFrequency(),
      ],
      ...['no_timer_check', 'systemd.show_status=0', 'net.ifnames=0', 'psi=1', `lsm=${LSM}`],
      ...['audit=1', 'audit_backlog_limit=8192', `enforcing=${enforcing ? 1 : 0}`],
    ]
    if (init !== undefined) words.push(`puzzled.init=${init}`)
    if (shell) words.push('puzzled.shell')
    return [...words, ...(append ?? [])].join(' ')
  }

  /** What a person needs when the machine gave no answer. */
  #report(how) {
    const file = join(this.#dir, 'console')
    const tail = existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(-40).join('\n') : ''
    return `${tail}\n${how}`
  }
}
