import { row, type ThreatRow } from './row.ts'

const LAUNCH = 'test/escape/S01-S05-launch.test.ts'
const KERNEL = 'test/escape/S06-S11-kernel.test.ts'
const ODD = 'test/escape/S03-odd-places.test.ts'
const FILES = 'test/escape/S12-S16-files.test.ts'
const LIFE = 'test/escape/S14-S49-lifetime.test.ts'
const CHANGES = 'test/escape/S15-S20-changeset.test.ts'
const COMMIT = 'test/root/commit.test.ts'

export const LAUNCHING: readonly ThreatRow[] = [
  row(
    'S1',
    'leaked descriptors and working directory',
    [
      `${LAUNCH} › S1 leaked descriptors and working directory`,
      'test/escape/S01-streams.test.ts › S1 files behind the standard streams',
      `${ODD} › S1 what a caller of puzzlectl left open`,
    ],
    'outside, the attack finds the descriptor and changes the file behind a stream',
    'close-on-exec everywhere, `close_range`, pipes instead of the caller’s files',
  ),
  row(
    'S2',
    'executables by their magic links',
    [`${LAUNCH} › S2 executables by their magic links`],
    'outside, the executable can be opened for writing',
    'sealed memory file, PID namespace',
  ),
  row(
    'S3',
    'races on the places that are mounted',
    [
      'test/escape/S03-mount-races.test.ts › S3 races on the places that are mounted',
      `${ODD} › S3 bases with odd names`,
      `${ODD} › S3 programs and directories that lead outside`,
    ],
    'the exchange is seen to happen between launches',
    'mounts by descriptor, `openat2` without links',
  ),
  row(
    'S4',
    'the setup phase',
    [`${LAUNCH} › S4 the setup phase`],
    'the attack wins against an ordinary process of its user',
    'not dumpable until exec, processes known by pidfd',
  ),
  row(
    'S5',
    'left-over capabilities',
    [`${LAUNCH} › S5 capabilities`],
    'outside, root has them',
    'all five sets empty, securebits, no_new_privs',
  ),
  row(
    'S6',
    'typing into a terminal',
    [`${KERNEL} › S6 typing into a terminal`],
    'outside, the attack types',
    'a terminal of its own, seccomp on the low half of the request',
  ),
  row(
    'S7',
    'other ABIs',
    [`${KERNEL} › S7 other ABIs`],
    'outside, the calls succeed',
    'seccomp by architecture',
  ),
  row(
    'S8',
    'new namespaces',
    [
      `${KERNEL} › S8 namespaces, S10 io_uring, S15 devices, S19 project ids, socket families`,
      'test/escape/S08-named-namespaces.test.ts › S8 namespaces that have a name',
      'test/escape/S08-mounted-namespaces.test.ts › S8 namespaces and processes of the host that are mounted where an agent looks',
    ],
    'outside, the doors are open',
    'seccomp; each door is tried at every start; what is mounted of them is not shown',
  ),
  row(
    'S9',
    'environment',
    [
      'test/escape/S09-environment.test.ts › S9 the environment',
      'test/escape/S09-environment.test.ts › S9 the program itself',
    ],
    'outside, the variable arrives; the planted module is loaded by another program',
    'list of names; modules only from the installation',
  ),
  row(
    'S10',
    'io_uring',
    [`${KERNEL} › S8 namespaces, S10 io_uring, S15 devices, S19 project ids, socket families`],
    'outside, a ring is made',
    'seccomp',
  ),
  row(
    'S11',
    'forbidden system calls',
    [
      `${KERNEL} › S11 forbidden system calls`,
      'test/escape/S11-neighbours.test.ts › S11 commands of one branch against each other',
      'test/escape/S11-filters.test.ts › S11 each of the three filters',
      'test/escape/S11-rights.test.ts › S11 allowed calls that are asked for more',
      'test/escape/S11-rights.test.ts › S11 objects of the kernel that anybody may use',
    ],
    'outside, none is refused with EPERM',
    'seccomp with a verdict for every call of the kernel',
  ),
  row(
    'S12',
    'settings of the host',
    [
      `${FILES} › S12 settings of the host`,
      `${FILES} › what proc tells about the host`,
      'test/vm/checks/core.test.ts › a program of the host that handles cores',
    ],
    'outside, root opens and reads them',
    'masked and read-only proc, no sysfs, no core files and no core handlers',
  ),
  row(
    'S13',
    'the layers',
    [`${FILES} › S13 the layers`],
    'the layers exist outside',
    'mounted by descriptor, mode 0700, on no visible path',
  ),
  row(
    'S14',
    'writing after the approval',
    [
      `${LIFE} › S14 writers that go on`,
      'test/root/commit-writers.test.ts › after the files were copied and hashed: nothing of it reaches the base',
      'test/root/commit-writers.test.ts › is noticed by this test where a commit trusts the digest of the layer',
      'test/root/commit-races.test.ts › somebody who writes to the layers during the commit',
    ],
    'the writers do write; a commit that trusts the digest of the layer is seen to fail',
    'kill and wait, real unmount, digest again, digest of the copies',
  ),
  row(
    'S15',
    'device nodes',
    [
      `${KERNEL} › S8 namespaces, S10 io_uring, S15 devices, S19 project ids, socket families`,
      `${CHANGES} › S15 special files in the layer`,
    ],
    'outside, root makes them',
    'no capability, seccomp, nodev, refused in a changeset',
  ),
  row(
    'S16',
    'setuid and capabilities',
    [
      `${FILES} › S16 setuid programs`,
      `${ODD} › S16 directories that hand on a group`,
      `${COMMIT} › do not let setuid, setgid and capabilities land, and say so`,
    ],
    'outside, nobody becomes root by one; a profile may allow it',
    'nosuid, no_new_privs, stripped at the commit',
  ),
  row(
    'S17',
    'forged overlay metadata',
    [
      `${CHANGES} › S17 forged deletions`,
      'test/root/diff-layers.test.ts › forged overlay attributes, which delete nothing',
    ],
    'real deletions are in the same changeset',
    'only the kernel’s own marks count',
  ),
  row(
    'S18',
    'replaced directories',
    [
      `${CHANGES} › S18 replaced directories`,
      'test/root/diff.test.ts › that were emptied and made again lose what was in them',
    ],
    'the same acts without a branch',
    'the diff is a set of deletions and additions',
  ),
  row(
    'S19',
    'project ids',
    [
      `${KERNEL} › S8 namespaces, S10 io_uring, S15 devices, S19 project ids, socket families`,
      'test/vm/checks/quota.test.ts › project quota on XFS, through the upper layer of an overlay',
    ],
    'outside, the owner changes it; without a limit the writes succeed',
    'seccomp on the ioctl, project quota',
  ),
  row(
    'S20',
    'bombs',
    [
      `${CHANGES} › S20 bombs`,
      'test/escape/S20-inotify.test.ts › S20 every inotify instance of a user',
      'test/escape/S20-inotify.test.ts › S20 what an agent can watch',
      'test/root/diff.test.ts › make paths that are longer than PATH_MAX',
      'test/root/diff-layers.test.ts › trees that are deeper than a review',
    ],
    'the trees are made, and found again name by name; outside, who watches hears',
    'walks on descriptors, names as bytes, ceilings',
  ),
  row(
    'S21',
    'process numbers that come again',
    [
      `${LIFE} › S21 process numbers that come again`,
      'test/escape/S21-signals.test.ts › S21 signals to a process number of the host',
    ],
    'more than twenty processes are seen to end; outside, a signal by number ends a process',
    'pidfd and cgroup; a PID namespace of its own',
  ),
  row(
    'S22',
    'executing by indirection',
    ['test/escape/S22-indirect-exec.test.ts › S22 executing by indirection'],
    'outside, every way runs the tool',
    'denied programs are masked; the list is judged by the kernel',
  ),
]
