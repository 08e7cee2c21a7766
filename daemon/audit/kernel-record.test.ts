import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RECORD, readKernelRecord } from './kernel-record.ts'

/** Recorded from Linux 6.18. */
const SECCOMP =
  'audit(1795253440.995:87): auid=1234 uid=0 gid=0 ses=1 pid=30972 comm="python3" exe="/usr/bin/python3.11" sig=0 arch=c000003e syscall=165 compat=0 ip=0x7f5db191f829 code=0x50000'
/** As the kernel's documentation of Landlock has them. */
const ACCESS =
  'audit(1729738800.268:30): domain=195ba459b blockers=fs.write_file,fs.make_reg path="/etc/passwd" dev="vda2" ino=354'
const SIGNAL =
  'audit(1729738800.349:44): domain=195ba459b blockers=scope.signal opid=1 ocomm=73797374656D64202F'
const PORT = 'audit(1729738800.349:45): domain=195ba459b blockers=net.connect_tcp daddr=127.0.0.1 dest=25'
const DOMAIN =
  'audit(1729738800.268:30): domain=195ba459b status=allocated mode=enforcing pid=300 uid=0 exe="/root/sandboxer" comm="sandboxer"'
const AVC =
  'audit(1364481363.243:24): avc:  denied  { read open } for  pid=2945 comm="cat" name="shadow" dev="dm-0" ino=14 scontext=u:r:a_t:s0 tcontext=u:object_r:b_t:s0 tclass=file permissive=0'
const APPARMOR =
  'audit(1364481363.243:24): apparmor="DENIED" operation="open" profile="/usr/bin/x" name="/etc/a" pid=12 comm="x" requested_mask="r"'

describe('records of the kernel', () => {
  it('of seccomp name the session, the process and the call', () => {
    expect(readKernelRecord(RECORD.seccomp, SECCOMP)).toEqual({
      ...{ kind: 'seccomp', at: 1795253440995, session: 1, pid: 30972, program: 'python3', call: 165 },
    })
    expect(readKernelRecord(RECORD.seccomp, SECCOMP.replace('ses=1', 'ses=4294967295'))).toMatchObject({
      session: null,
    })
    for (const action of ['0x80000000', '0x7ffc0000', '0x0', 'x'])
      expect(readKernelRecord(RECORD.seccomp, SECCOMP.replace('0x50000', action))).toBeNull()
  })

  it('of Landlock name the domain, what it does not grant, and what was tried', () => {
    expect(readKernelRecord(RECORD.landlockAccess, ACCESS)).toMatchObject({
      ...{ domain: '195ba459b', blockers: ['fs.write_file', 'fs.make_reg'], object: '/etc/passwd' },
    })
    expect(readKernelRecord(RECORD.landlockAccess, SIGNAL)).toMatchObject({ object: 'process systemd /' })
    expect(readKernelRecord(RECORD.landlockAccess, PORT)).toMatchObject({ object: '127.0.0.1 port 25' })
    expect(readKernelRecord(RECORD.landlockDomain, DOMAIN)).toMatchObject({ domain: '195ba459b', pid: 300 })
    const gone = 'audit(1729738800.324:42): domain=195ba459b status=deallocated denials=3'
    expect(readKernelRecord(RECORD.landlockDomain, gone)).toBeNull()
  })

  it('of security modules name the module; what was only noted is no refusal', () => {
    expect(readKernelRecord(RECORD.avc, AVC)).toMatchObject({
      ...{
        kind: 'lsm',
        module: 'selinux',
        pid: 2945,
        program: 'cat',
        act: '{ read open }',
        object: 'shadow',
      },
    })
    expect(readKernelRecord(RECORD.avc, AVC.replace('permissive=0', 'permissive=1'))).toBeNull()
    expect(readKernelRecord(RECORD.avc, APPARMOR)).toMatchObject({ module: 'apparmor', object: '/etc/a' })
    expect(readKernelRecord(RECORD.avc, APPARMOR.replace('DENIED', 'ALLOWED'))).toBeNull()
  })

  it('cannot be given other numbers by a name: the kernel writes such names in hex', () => {
    const name = 'x" pid=1 ses=7 syscall=1'
    const hex = Buffer.from(name).toString('hex').toUpperCase()
    const record = readKernelRecord(RECORD.seccomp, SECCOMP.replace('"python3"', hex))
    expect(record).toMatchObject({ pid: 30972, session: 1, call: 165, program: name })
    // Even unquoted, the first field of a name counts.
    expect(readKernelRecord(RECORD.seccomp, `${SECCOMP} pid=1 ses=7`)).toMatchObject({
      pid: 30972,
      session: 1,
    })
  })

  it('of any other form are none, and nothing throws', () => {
    const texts = [SECCOMP, ACCESS, DOMAIN, AVC, APPARMOR, SIGNAL]
    fc.assert(
      fc.property(
        fc.constantFrom(...Object.values(RECORD), 1300),
        fc.constantFrom(...texts),
        fc.array(fc.tuple(fc.nat(300), fc.string({ maxLength: 12 })), { maxLength: 4 }),
        fc.string({ unit: 'binary', maxLength: 60 }),
        (type, text, cuts, noise) => {
          const changed = cuts.reduce((so, [at, put]) => so.slice(0, at) + put + so.slice(at + 1), text)
          for (const said of [changed, noise, text.slice(0, cuts[0]?.[0] ?? 0)]) {
            const record = readKernelRecord(type, said)
            if (record !== null) expect(Number.isSafeInteger(record.at)).toBe(true)
            if (record !== null && 'pid' in record) expect(Number.isSafeInteger(record.pid)).toBe(true)
          }
        },
      ),
      { numRuns: 400 },
    )
  })
})
