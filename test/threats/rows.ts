import { LAUNCHING } from './launching.ts'
import { row, type ThreatRow } from './row.ts'

export type { ThreatRow } from './row.ts'

const LIFE = 'test/escape/S14-S49-lifetime.test.ts'
const HOSTS = 'test/escape/S33-S36-hosts.test.ts'
const REQUESTS = 'test/escape/S38-S41-requests.test.ts'
const COMMIT = 'test/root/commit.test.ts'
const BUS = 'test/e2e/bus-attacks.test.ts'

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
    'a plain host is dialled, and a capture on the host sees it',
    'one value is judged and dialled',
  ),
  row(
    'S34',
    'DNS',
    [`${HOSTS} › S34 names`],
    'an allowed name is looked up, and a capture on the host sees it',
    'synthetic answers, pinned addresses',
  ),
  row(
    'S35',
    'addresses that are not the outside',
    [`${HOSTS} › S35 addresses that are not the outside`],
    'an address that a rule opts in is reached, and a capture on the host sees it',
    'ranges after resolution',
  ),
  row(
    'S36',
    'one host said, another meant',
    [`${HOSTS} › S36 connections that say one host and mean another`],
    'the matching connection passes, and a capture on the host sees it',
    'SNI, CONNECT and Host must agree',
  ),
  row(
    'S37',
    'request smuggling',
    ['test/escape/S37-smuggling.test.ts › S37 request smuggling'],
    'the plain forms pass, and a capture on the host sees them',
    'strict parser, requests are written anew',
  ),
  row(
    'S38',
    'a read that is a write',
    [`${REQUESTS} › S38 a read that is a write`],
    'a plain read passes, and a capture on the host sees it',
    'classes, header list',
  ),
  row(
    'S39',
    'replay',
    [`${REQUESTS} › S39 replay`, 'test/crash/queue.test.ts › a daemon that dies between two steps'],
    'what was approved is sent, and a capture on the host sees it',
    'state per request, `unknown` is shown',
  ),
  row(
    'S40',
    'credentials',
    [`${REQUESTS} › S40 credentials`, 'test/escape/S40-pieces.test.ts › S40 an echo in pieces'],
    'the secret reaches its host; a capture on the host sees the placeholder in clear',
    'placeholders, searched answers',
  ),
  row(
    'S41',
    'too much of everything',
    [
      `${REQUESTS} › S41 too much of everything`,
      'test/escape/S41-floods.test.ts › S41 a flood',
      'test/escape/S41-bombs.test.ts › S41 what is small on the way and large when it is unpacked',
      'test/escape/S41-bombs.test.ts › S41 tunnels that are held open',
    ],
    'others keep their answers; a capture on the host sees what passes; a branch with room has all of its tunnels',
    'ceilings; nothing of the network is unpacked',
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
      'test/escape/S46-worker.test.ts › S46 code of an agent in the policy worker',
      'test/escape/S46-worker.test.ts › S46 a policy worker that says what is not in its grammar',
      'test/escape/S46-descriptors.test.ts › S46 descriptors that are handed over',
      'daemon/policy/gate-replies.test.ts › what a policy worker says',
      'daemon/lib/seal.test.ts › sealed prototypes take nothing from a document, and objects are what they were',
    ],
    'the same calls with good input succeed; a worker that keeps its rights does everything; outside, the descriptors arrive',
    'schemas, ceilings, a policy worker without rights, sealed prototypes, sockets that take no descriptors',
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
