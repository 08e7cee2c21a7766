// What the suites of the VM tier run, and in which order: one job is one machine.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { repository } from './disks.mjs'

/**
 * Repetitions that find what happens one time in a thousand belong on a fast machine; here it is the surroundings that
 * differ, and each of them costs twenty times as much.
 */
const FEWER = {
  PUZZLED_RACE_ROUNDS: 300,
  PUZZLED_RACE_IMAGE_ROUNDS: 30,
  PUZZLED_WRITER_ROUNDS: 3,
  PUZZLED_MODEL_RUNS: 20,
  PUZZLED_SCALE_ROUNDS: 25,
  PUZZLED_ESCAPE_KILLS: 3,
  PUZZLED_ESCAPE_LAUNCHES: 10,
  PUZZLED_ESCAPE_CYCLES: 10,
  PUZZLED_ESCAPE_ROUNDS: 300,
  PUZZLED_ESCAPE_DEPTH: 60,
}

/** What this tier is for must not be skipped in it. */
const suite = (tier, files = []) => ({
  name: tier,
  job: [
    ...Object.entries(FEWER).map(([name, value]) => `${name}=${value}`),
    ...['PUZZLED_MUST_RUN=vm', 'PUZZLED_TEST_AGAIN=1', 'node', 'tools/test.mjs', tier, ...files],
  ].join(' '),
})

/**
 * What the surroundings of this machine decide: quota, controllers, scopes, the system bus, the journal, BPF LSM, SELinux.
 * The machines of a whole run begin with these, one line each, so that a run that is cut short has seen the most.
 */
const FIRST = [
  [
    'root',
    'quota',
    'features',
    'journald',
    'kernel-denials',
    'required-limits',
    'systemd-cgroups',
    'exec-gate',
    'overlay',
  ],
  ['root', 'budget', 'space', 'launch', 'exec.', 'residue'],
  ['e2e', 'doctor', 'polkit', 'bus-rights', 'bad-input', 'detached'],
  ['escape', 'S22', 'S42', 'S12', 'S06', 'S32', 'S01', 'S11', 'S45', 'layers'],
  ['e2e', 'run', 'prove', 'denials', 'metrics'],
  ['escape', 'S14', 'S15', 'S03', 'S09', 'S46', 'prove'],
  ['root', 'commit.', 'commit-parts', 'diff.', 'terminal', 'native', 'init', 'spawn.'],
  ['e2e', 'bus.', 'bus-attacks', 'bus-methods', 'join'],
]

/** A tier's files that `FIRST` does not name, dealt out to this many machines. */
function rest(tier, machines) {
  const named = FIRST.filter(([name]) => name === tier).flatMap(([, ...starts]) => starts)
  const left = filesOf(tier).filter((file) => !named.some((start) => file.startsWith(start)))
  return Array.from({ length: machines }, (_, which) =>
    suite(
      tier,
      left.filter((_file, index) => index % machines === which).map((file) => `test/${tier}/${file}`),
    ),
  )
}

const filesOf = (tier) =>
  readdirSync(join(repository, 'test', tier)).filter((name) => name.endsWith('.test.ts'))

/** A machine that dies or hangs takes no more with it than its share. */
export const whole = () => [
  suite('vm'),
  ...FIRST.map(([tier, ...starts]) =>
    suite(
      tier,
      starts.map((start) => `test/${tier}/${start}`),
    ),
  ),
  ...rest('e2e', 4),
  ...rest('root', 4),
  ...rest('escape', 1),
]

/**
 * What only the VM can show, and one way through everything: an emulated machine is ten to twenty times slower, so
 * continuous integration runs these, and a release the whole suite. What matters most comes first; the journal stands
 * for all tests of a daemon on a bus of its own. Commits are not among them: the images that the host's tests mount are
 * XFS, btrfs and ext4 as well. Budgets are held to real controllers by vm/checks/limits.
 */
export const core = () => [
  suite('vm'),
  suite('root', [
    'test/root/quota',
    'test/root/overlay',
    'test/root/launch.test',
    'test/root/exec.test',
    'test/root/features',
    'test/root/journald',
  ]),
  suite('e2e', ['test/e2e/doctor', 'test/e2e/run', 'test/e2e/journal']),
]

/** These files, each tier in a machine of its own. */
export function only(files) {
  const tiers = new Set(files.map((file) => file.split('/')[1]))
  return [...tiers].map((tier) =>
    suite(
      tier,
      files.filter((file) => file.startsWith(`test/${tier}/`)),
    ),
  )
}

/** `2/5`: the second fifth of these machines. A whole run may be spread over hosts or nights. */
export function chosen(jobs, words) {
  const [, part, of] = (/^([1-9]\d*)\/([1-9]\d*)$/.exec(words) ?? []).map(Number)
  if (part === undefined || part > of) throw new Error('--part is N/M, from 1/M to M/M')
  const edge = (which) => Math.round((jobs.length * which) / of)
  return jobs.slice(edge(part - 1), edge(part))
}
