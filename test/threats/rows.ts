/** One threat: where it is attacked, how the attack is known to work, and what stands in its way. */
export interface ThreatRow {
  readonly id: string
  readonly threat: string
  /** `file › title` of a `describe` or test. */
  readonly shown: readonly string[]
  /** What would make the attack's test red if the attack were broken. */
  readonly control: string
  readonly behind: string
}

const row = (
  id: string,
  threat: string,
  shown: readonly string[],
  control: string,
  behind: string,
): ThreatRow => ({
  id,
  threat,
  shown,
  control,
  behind,
})

const LAUNCH = 'test/escape/S01-S05-launch.test.ts'
const KERNEL = 'test/escape/S06-S11-kernel.test.ts'
const FILES = 'test/escape/S12-S16-files.test.ts'
const LIFE = 'test/escape/S14-S49-lifetime.test.ts'
const CHANGES = 'test/escape/S15-S20-changeset.test.ts'
const HOSTS = 'test/escape/S33-S36-hosts.test.ts'
const REQUESTS = 'test/escape/S38-S41-requests.test.ts'
const COMMIT = 'test/root/commit.test.ts'
const BUS = 'test/e2e/bus-attacks.test.ts'

export const LAUNCHING: readonly ThreatRow[] = [
  row(
    'S1',
    'leaked descriptors and working directory',
    [
      `${LAUNCH} › S1 leaked descriptors and working directory`,
      'test/escape/S01-streams.test.ts › S1 files behind the standard streams',
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
    ['test/escape/S03-mount-races.test.ts › S3 races on the places that are mounted'],
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
    [`${KERNEL} › S8 namespaces, S10 io_uring, S15 devices, S19 project ids, socket families`],
    'outside, the doors are open',
    'seccomp; each door is tried at every start',
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
    [`${KERNEL} › S11 forbidden system calls`],
    'outside, none is refused with EPERM',
    'seccomp with a verdict for every call of the kernel',
  ),
  row(
    'S12',
    'settings of the host',
    [`${FILES} › S12 settings of the host`, `${FILES} › what proc tells about the host`],
    'outside, root opens and reads them',
    'masked and read-only proc, no sysfs, no core files',
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
      'test/root/diff.test.ts › make paths that are longer than PATH_MAX',
      'test/root/diff-layers.test.ts › trees that are deeper than a review',
    ],
    'the trees are made, and found again name by name',
    'walks on descriptors, names as bytes, ceilings',
  ),
  row(
    'S21',
    'process numbers that come again',
    [`${LIFE} › S21 process numbers that come again`],
    'more than twenty processes are seen to end',
    'pidfd and cgroup',
  ),
  row(
    'S22',
    'executing by indirection',
    ['test/escape/S22-indirect-exec.test.ts › S22 executing by indirection'],
    'outside, every way runs the tool',
    'denied programs are masked; the list is judged by the kernel',
  ),
]

export const COMMITTING: readonly ThreatRow[] = [
  row(
    'S23',
    'links that are exchanged during a commit',
    ['test/root/commit-races.test.ts › a base directory that is swapped for a symlink during commits'],
    'swaps and landed commits are counted, neither may be none',
    '`openat2` beneath the base, no links',
  ),
  row(
    'S24',
    'the base of somebody else',
    [
      `${COMMIT} › land what the requester could have written`,
      'test/e2e/bus-rights.test.ts › a caller gains no right',
    ],
    'what the requester may write lands',
    'rights of the requester for every path',
  ),
  row(
    'S25',
    'lost updates',
    [
      `${COMMIT} › where the base changed meanwhile, with every path named, and changes nothing`,
      'test/e2e/run.test.ts › nobody loses work when the base changed meanwhile',
    ],
    'the untouched base is committed to',
    'identity of every path, again under the lock',
  ),
  row(
    'S26',
    'hard links',
    [
      `${COMMIT} › makes the base exactly what the agent saw, and leaves nothing behind`,
      'test/root/diff-layers.test.ts › hard links',
    ],
    'the other name is there and is warned of',
    'replaced by rename',
  ),
  row(
    'S27',
    'persistence',
    [
      'daemon/policy/corpus.test.ts › the catalogue',
      'test/e2e/run.test.ts › persistence in a git hook is not landed by itself',
    ],
    'ordinary work passes untouched',
    'catalogue of the default policy',
  ),
  row(
    'S28',
    'a crash in the middle',
    [
      'test/crash/commit-kill.test.ts › a commit killed by SIGKILL',
      'test/crash/commit-model.test.ts › a commit on a disk that forgets',
    ],
    'a commit that does not sync is noticed',
    'journal',
  ),
  row(
    'S29',
    'approval of one thing, commit of another',
    [
      `${COMMIT} › where the branch was written to after the review`,
      'daemon/policy/approvals.test.ts › lets exactly the approved digest through, once',
    ],
    'the approved digest lands',
    'digest bound to the approval',
  ),
  row(
    'S30',
    'deceiving the reviewer',
    ['ctl/render/visible.test.ts › text of agents on a terminal'],
    'ordinary text of any script is as it is',
    'everything that an agent wrote is made visible',
  ),
  row(
    'S31',
    'forged records',
    [
      'daemon/audit/log.test.ts › verifies, over restarts and segments, and keeps one record per line whatever the names are',
      'test/root/journald.test.ts › a record reaches the journal field by field, and a newline in a value makes no second field',
    ],
    'the record is found',
    'JSON, one record per line; sized fields',
  ),
]

export const NETWORK: readonly ThreatRow[] = [
  row(
    'S32',
    'ways around the proxy',
    ['test/escape/S32-packets.test.ts › S32 packets'],
    'the capture sees packets of the host',
    'own namespace without a route, nftables, seccomp on families',
  ),
  row(
    'S33',
    'hosts that parsers read differently',
    [`${HOSTS} › S33 hosts that parsers read differently`],
    'plain hosts are dialled',
    'one value is judged and dialled',
  ),
  row(
    'S34',
    'DNS',
    [`${HOSTS} › S34 names`],
    'allowed names are looked up',
    'synthetic answers, pinned addresses',
  ),
  row(
    'S35',
    'addresses that are not the outside',
    [`${HOSTS} › S35 addresses that are not the outside`],
    'an address that a rule opts in is reached',
    'ranges after resolution',
  ),
  row(
    'S36',
    'one host said, another meant',
    [`${HOSTS} › S36 connections that say one host and mean another`],
    'the matching connection passes',
    'SNI, CONNECT and Host must agree',
  ),
  row(
    'S37',
    'request smuggling',
    ['test/escape/S37-smuggling.test.ts › S37 request smuggling'],
    'the plain forms pass',
    'strict parser, requests are written anew',
  ),
  row(
    'S38',
    'a read that is a write',
    [`${REQUESTS} › S38 a read that is a write`],
    'plain reads pass',
    'classes, header list',
  ),
  row(
    'S39',
    'replay',
    [`${REQUESTS} › S39 replay`, 'test/crash/queue.test.ts › a daemon that dies between two steps'],
    'what was approved is sent',
    'state per request, `unknown` is shown',
  ),
  row(
    'S40',
    'credentials',
    [`${REQUESTS} › S40 credentials`],
    'the secret reaches its host',
    'placeholders, searched answers',
  ),
  row(
    'S41',
    'too much of everything',
    [`${REQUESTS} › S41 too much of everything`],
    'others keep their answers',
    'ceilings',
  ),
]

export const CONTROL: readonly ThreatRow[] = [
  row(
    'S42',
    'sockets of the host',
    ['test/escape/S42-sockets.test.ts › S42 sockets of the host'],
    'outside, all of them answer',
    'private `/run` and `/tmp`, own network namespace, Landlock scope',
  ),
  row(
    'S43',
    'the bus',
    [
      `${BUS} › a process in the cgroup of a branch gets no answer to anything, root or not`,
      `${BUS} › a user in no group is refused every method that does something`,
    ],
    'a member of the group is served',
    'cgroup and ids of the caller, on every method',
  ),
  row(
    'S44',
    'failing open',
    [
      'test/e2e/daemon-ends.test.ts › a daemon that is killed',
      'daemon/policy/gate.test.ts › a policy that fails',
      'daemon/policy/gate.test.ts › a worker that fails',
    ],
    'the whole policy allows',
    'uncertain is refused',
  ),
  row(
    'S45',
    'the memory that a supervisor judges',
    [
      'test/escape/S45-notify-race.test.ts › S45: a supervisor that opens its own copy never hands out anything else',
    ],
    'a supervisor that lets the kernel read again is betrayed',
    'no grant by pointer',
  ),
  row(
    'S46',
    'bad input to the daemon',
    [
      `${BUS} › bad input`,
      `${BUS} › a flood is answered with an error, and others do not notice`,
      'daemon/policy/fuzz.test.ts › arbitrary contents',
    ],
    'the same calls with good input succeed',
    'schemas, ceilings, workers',
  ),
  row(
    'S47',
    'a policy engine that fails',
    [
      'daemon/policy/gate.test.ts › a policy that fails',
      'daemon/policy/fuzz.test.ts › arbitrary results of a policy',
    ],
    'the whole policy allows',
    'anything but a decision is deny',
  ),
  row(
    'S48',
    'what another branch got',
    [`${LIFE} › S48 what one branch got is not what another one gets`],
    'each profile answers as it should',
    'no cache is shared',
  ),
  row(
    'S49',
    'what is left',
    [
      `${LIFE} › S49 what is left`,
      'test/e2e/killed.test.ts › puzzlectl, killed',
      'test/e2e/daemon-ends.test.ts › says so to whoever waits, and after a restart the branch is stopped with its writes',
      'test/root/residue.test.ts › a mount that stays is residue',
    ],
    'the guard behind every root test is shown to see each kind',
    'private mounts, sweep at the start',
  ),
]

export const ROWS: readonly ThreatRow[] = [...LAUNCHING, ...COMMITTING, ...NETWORK, ...CONTROL]
