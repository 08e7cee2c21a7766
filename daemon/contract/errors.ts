// pure

/**
 * Every error that a person or a program can meet, in one table. `exit` is what `puzzlectl` leaves with, `bus` the
 * D-Bus error name below `org.puzzled1.Error.`, or null for what only `puzzlectl` itself can find; `docs/errors.md` is
 * generated from it.
 */
export const ERRORS = {
  usage: {
    exit: 2,
    bus: 'Usage',
    summary: 'The command line or the arguments of a call are not of the documented form.',
  },
  'not-root': {
    exit: 77,
    bus: null,
    summary: 'The operation needs root and no daemon answers on the bus.',
  },
  'access-denied': { exit: 77, bus: 'AccessDenied', summary: 'The caller may not do this.' },
  'library-missing': {
    exit: 69,
    bus: 'LibraryMissing',
    summary: 'A shared library of the system is not installed.',
  },
  'feature-missing': {
    exit: 69,
    bus: 'FeatureMissing',
    summary: 'The kernel or the system lacks something that the profile, or a limit of a command, requires.',
  },
  'kernel-refused': {
    exit: 71,
    bus: 'KernelRefused',
    summary: 'A system call failed where nothing better is known about the reason.',
  },
  'start-failed': {
    exit: 125,
    bus: 'StartFailed',
    summary: 'The agent could not be started; the message names the step.',
  },
  'command-not-found': {
    exit: 127,
    bus: 'CommandNotFound',
    summary: 'The command does not exist inside the branch.',
  },
  'command-not-executable': {
    exit: 126,
    bus: 'CommandNotExecutable',
    summary: 'The command exists but cannot be executed.',
  },
  'state-unreadable': {
    exit: 74,
    bus: 'StateUnreadable',
    summary: 'The state directory or a record in it cannot be read.',
  },
  'state-unsuitable': {
    exit: 78,
    bus: 'StateUnsuitable',
    summary: 'The state directory is on a filesystem that cannot hold a store.',
  },
  'state-locked': { exit: 75, bus: 'StateLocked', summary: 'Another process uses the store.' },
  'state-newer': { exit: 78, bus: 'StateNewer', summary: 'The store was written by a newer version.' },
  'record-damaged': {
    exit: 74,
    bus: 'RecordDamaged',
    summary: 'A record is damaged; it was kept and nothing was done.',
  },
  'base-invalid': {
    exit: 66,
    bus: 'BaseInvalid',
    summary:
      'A base cannot be forked: it does not exist, is not a directory, is or contains the store, or is "/".',
  },
  'branch-unknown': { exit: 68, bus: 'BranchUnknown', summary: 'No branch has this id or name.' },
  'branch-ambiguous': {
    exit: 68,
    bus: 'BranchAmbiguous',
    summary: 'More than one branch begins with this id.',
  },
  'wrong-state': {
    exit: 65,
    bus: 'WrongState',
    summary: 'The branch is in a state that does not allow this.',
  },
  'not-writable': {
    exit: 77,
    bus: 'NotWritable',
    summary: 'The requester could not have written this path themselves.',
  },
  'no-space': { exit: 73, bus: 'NoSpace', summary: 'A disk or a quota is full.' },
  held: { exit: 120, bus: null, summary: 'The changeset is held for a person to decide.' },
  denied: { exit: 121, bus: 'Denied', summary: 'The policy denied the changeset.' },
  conflict: { exit: 122, bus: 'Conflict', summary: 'The base changed since the branch was forked.' },
  stuck: {
    exit: 123,
    bus: 'Stuck',
    summary: 'A commit or a discard could not be finished or undone; a person is needed.',
  },
  'budget-exceeded': { exit: 124, bus: 'BudgetExceeded', summary: 'A budget or the time limit was reached.' },
  'changed-since-review': {
    exit: 122,
    bus: 'ChangedSinceReview',
    summary: 'The changeset is no longer the one that was approved.',
  },
  'approval-invalid': {
    exit: 121,
    bus: 'ApprovalInvalid',
    summary: 'The approval is expired, used, or bound to something else.',
  },
  'profile-invalid': {
    exit: 65,
    bus: 'ProfileInvalid',
    summary: 'A profile is malformed, unknown, or widens what it extends.',
  },
  'policy-invalid': {
    exit: 65,
    bus: 'PolicyInvalid',
    summary: 'A policy or action policy is malformed or cannot be loaded.',
  },
  'policy-failed': {
    exit: 121,
    bus: 'PolicyFailed',
    summary: 'The policy could not be evaluated; that counts as deny.',
  },
  'config-invalid': { exit: 78, bus: 'ConfigInvalid', summary: 'The daemon configuration is malformed.' },
  'audit-failed': {
    exit: 74,
    bus: 'AuditFailed',
    summary: 'The audit log cannot be written or does not verify.',
  },
  'queue-full': { exit: 73, bus: 'QueueFull', summary: 'The request queue of the branch is full.' },
  'request-unknown': { exit: 68, bus: 'RequestUnknown', summary: 'No queued request has this id.' },
  'bus-gone': {
    exit: 69,
    bus: null,
    summary: 'The message bus or the daemon went away during the call.',
  },
  'daemon-not-answering': {
    exit: 69,
    bus: null,
    summary: 'The daemon or the message bus is there and does not answer, not even a ping.',
  },
  'too-large': { exit: 65, bus: 'TooLarge', summary: 'An argument or a tree is over a documented limit.' },
  internal: { exit: 70, bus: 'Internal', summary: 'A defect in puzzled.' },
} as const satisfies Record<string, { exit: number; bus: string | null; summary: string }>

export type ErrorCode = keyof typeof ERRORS

export const exitStatusOf = (code: ErrorCode): number => ERRORS[code].exit

/** What only a client can find is a defect where the daemon meets it. */
export const busNameOf = (code: ErrorCode): string =>
  `org.puzzled1.Error.${ERRORS[code].bus ?? ERRORS.internal.bus}`
