import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { BUS_CONFIG } from '../../e2e/private-bus.ts'

const PROGRAM = fileURLToPath(new URL('../../../dist/puzzlectl.js', import.meta.url))
const DAEMON = fileURLToPath(new URL('../../../dist/puzzled.js', import.meta.url))
const run = (command: string, ...args: string[]): string => execFileSync(command, args, { encoding: 'utf8' })

/**
 * The policy module in enforcing mode. A service whose program is labelled like the daemon executes a file that is
 * labelled like an agent's init; what runs from there is what an agent may do.
 */
describe('SELinux, enforcing', () => {
  const dir = mkdtempSync(join(tmpdir(), 'selinux-'))
  const init = join(dir, 'init')
  const mode = run('getenforce').trim()

  beforeAll(() => {
    chmodSync(dir, 0o755)
    copyFileSync('/bin/sh', init)
    run('chcon', '-t', 'puzzled_init_exec_t', init)
    mkdirSync('/var/lib/puzzled', { recursive: true })
    writeFileSync('/var/lib/puzzled/secret', 'of the store')
    run('restorecon', '-R', '/var/lib/puzzled')
    run('setenforce', '1')
  })
  afterAll(() => {
    run('setenforce', mode === 'Enforcing' ? '1' : '0')
    rmSync(dir, { recursive: true })
    rmSync('/var/lib/puzzled/secret')
  })

  // Output goes to the journal: a descriptor of ours would not be let through the bus to systemd.
  let runs = 0
  const asDaemon = (script: string): string => {
    const unit = `puzzled-selinux-${++runs}`
    const file = join(dir, unit)
    writeFileSync(file, `#!/bin/sh\nexec 2>&1\n${script}\necho "status $?"\n`, { mode: 0o755 })
    run('chcon', '-t', 'puzzled_exec_t', file)
    spawnSync('systemd-run', ['--quiet', '--wait', '--collect', '--unit', unit, file])
    run('journalctl', '--sync')
    return run('journalctl', '-o', 'cat', `_SYSTEMD_UNIT=${unit}.service`)
  }
  /** With no_new_privs, as agents are started; the pipe is the daemon's, like their standard output. */
  const asAgent = (script: string): string =>
    asDaemon(`setpriv --no-new-privs ${init} -c '(${script}) 2>&1; echo "status $?"' | cat`)

  it('Node runs in the domain of the daemon, which may compile code', () => {
    expect(asDaemon('cat /proc/self/attr/current; echo; node -p 40+2')).toMatch(
      /:puzzled_t:s0\0?\n42\nstatus 0/,
    )
  })

  it('what the daemon executes as an init is an agent, and Node runs there too', () => {
    const said = asAgent('cat /proc/self/attr/current; echo; node -p 40+2')
    expect(said).toMatch(/:puzzled_agent_t:s0\0?\n42\nstatus 0/)
  })

  it('the daemon reads its store and an agent does not', () => {
    expect(asDaemon('cat /var/lib/puzzled/secret')).toContain('of the store')
    expect(asAgent('cat /var/lib/puzzled/secret')).toMatch(/Permission denied\nstatus 1/)
  })

  it('the daemon reaches the system bus and an agent does not', () => {
    expect(asDaemon('busctl --system list --no-legend | grep -c systemd1')).toContain('status 0')
    expect(asAgent('busctl --system list --no-legend')).toMatch(/Permission denied\nstatus 1/)
  })

  it('an agent of puzzled runs in its scope, and reads what the policy refused to it', () => {
    const project = join(dir, 'project')
    mkdirSync(project)
    writeFileSync(join(project, 'odd'), 'readable by everybody, says its mode')
    run('chcon', '-t', 'user_home_t', project)
    run('chcon', '-t', 'puzzled_var_lib_t', join(project, 'odd'))
    run('chown', '-R', 'alice:', project)
    const list = '/run/puzzled/denials.jsonl'
    // The shell itself is refused: a program that is over before its denial is read has no branch any more.
    const agent = `cat /proc/self/attr/current; echo; for try in $(seq 60); do read x < odd; sleep 0.5; grep -q lsm ${list} && break; done; cat ${list}`
    writeFileSync(join(dir, 'agent'), agent)
    const script = [
      `cd ${project}`,
      'export SUDO_USER=alice SUDO_UID=$(id -u alice) SUDO_GID=$(id -g alice) HOME=/root',
      `${process.execPath} ${PROGRAM} run --then discard -- sh -c "$(cat ${join(dir, 'agent')})"`,
    ]
    const said = asDaemon(script.join('\n'))
    expect(said).toMatch(/:puzzled_agent_t:s0\0?\n/)
    expect(said).toContain('Permission denied')
    const rows = said.split('\n').filter((line) => line.startsWith('{"time"'))
    expect(rows.map((line) => JSON.parse(line) as unknown)).toContainEqual(
      expect.objectContaining({ layer: 'lsm', rule: 'selinux', subject: expect.stringContaining('odd') }),
    )
    expect(said).toContain('status 0')
  })

  it('files of a caller are copied to and from an agent beside the daemon', () => {
    const project = join(dir, 'streams')
    mkdirSync(project)
    run('chown', 'alice:', project)
    run('chcon', '-t', 'user_home_t', project)
    writeFileSync(join(dir, 'bus.conf'), BUS_CONFIG(join(dir, 'bus')))
    writeFileSync(
      join(dir, 'puzzled.yaml'),
      `state_dir: ${join(dir, 'state')}\nruntime_dir: ${join(dir, 'run')}\ngroups: { users: games, reviewers: news }\n`,
    )
    writeFileSync(join(dir, 'in'), 'what the caller says\n')
    const script = [
      `export HOME=/root DBUS_SYSTEM_BUS_ADDRESS=unix:path=${join(dir, 'bus')}; cd ${project}`,
      `dbus-daemon --nofork --nopidfile --config-file=${join(dir, 'bus.conf')} & bus=$!`,
      `until [ -S ${join(dir, 'bus')} ]; do sleep 0.2; done`,
      `${process.execPath} ${DAEMON} --config ${join(dir, 'puzzled.yaml')} & daemon=$!`,
      'until busctl --address=$DBUS_SYSTEM_BUS_ADDRESS list --no-legend | grep -q org.puzzled1; do sleep 0.2; done',
      `${process.execPath} ${PROGRAM} run --then discard -- sh -c 'cat; cat /proc/self/attr/current' < ../in > ../out`,
      'echo "run $?"; cat ../out; kill $daemon; wait $daemon; kill $bus',
    ]
    const said = asDaemon(script.join('\n'))
    expect(said).toMatch(/run 0\nwhat the caller says\n\S*:puzzled_agent_t:s0/)
  })

  it('an agent cannot mount, even as root', () => {
    expect(asDaemon('unshare --mount mount -t tmpfs none /mnt')).toContain('status 0')
    expect(asAgent('unshare --mount mount -t tmpfs none /mnt')).toMatch(/not permitted|denied/)
  })
})
