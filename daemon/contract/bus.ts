// pure

/**
 * The daemon on the bus, as data: the dispatcher checks signatures against it, the introspection XML in `docs/dbus/`
 * is generated from it, and the client calls by it.
 */

export const BUS_NAME = 'org.puzzled1'
export const MANAGER_PATH = '/org/puzzled1'
export const MANAGER_INTERFACE = 'org.puzzled1.Manager'
export const BRANCH_INTERFACE = 'org.puzzled1.Branch'
export const BRANCH_PREFIX = '/org/puzzled1/branch/'

export const branchPath = (id: string): string => `${BRANCH_PREFIX}${id}`

export interface BusArgument {
  readonly name: string
  readonly type: string
}

export type BusAction = 'look' | 'manage' | 'approve' | 'administer'

export interface BusMethod {
  readonly in: readonly BusArgument[]
  readonly out: readonly BusArgument[]
  /** What the caller must be allowed to do. */
  readonly action: BusAction
  readonly about: string
}

export interface BusInterface {
  readonly name: string
  readonly methods: Readonly<Record<string, BusMethod>>
  readonly properties: Readonly<Record<string, { readonly type: string; readonly about: string }>>
  readonly signals: Readonly<
    Record<string, { readonly args: readonly BusArgument[]; readonly about: string }>
  >
}

const arg = (name: string, type: string): BusArgument => ({ name, type })
const OUTCOME = [arg('outcome', 'a{sv}')]
const RECORD = [arg('record', 'a{sv}')]
const SELECTION = [arg('only', 'as'), arg('except', 'as')]

/** On the object that was called; who called hears of its own calls only. */
const PROGRESS = {
  args: [arg('call', 'u'), arg('done', 't'), arg('total', 't')],
  about:
    'How far a call of the receiver (by the serial number of its message) is that compares, lands or removes: at once, then at most five times a second. `total` is 0 while nobody can know it.',
}

export const MANAGER: BusInterface = {
  name: MANAGER_INTERFACE,
  methods: {
    CreateBranch: {
      in: [arg('request', 'a{sv}')],
      out: [arg('branch', 'o')],
      action: 'manage',
      about: 'Forks the bases into a new branch without starting anything.',
    },
    Run: {
      in: [arg('request', 'a{sv}')],
      out: [arg('branch', 'o'), arg('socket', 's'), arg('grants', 'av')],
      action: 'manage',
      about:
        'Forks and starts a command. `request` is as documented in docs/dbus.md; descriptors are taken from the caller; `socket` is where its terminal or pipes can be attached, or empty.',
    },
    ListBranches: {
      in: [],
      out: [arg('branches', 'aa{sv}')],
      action: 'look',
      about: 'All branches that the caller may see.',
    },
    GetBranch: {
      in: [arg('text', 's')],
      out: [arg('branch', 'o')],
      action: 'look',
      about: 'The branch with this name or unique prefix of an id.',
    },
    Revert: {
      in: [arg('commit', 's')],
      out: OUTCOME,
      action: 'manage',
      about: 'Lands the reverse of a commit.',
    },
    Events: {
      in: [],
      out: [arg('events', 'aa{sv}')],
      action: 'look',
      about: 'The last events of branches that the caller may see, oldest first.',
    },
    Blame: {
      in: [arg('path', 's'), arg('most', 'u')],
      out: [arg('commits', 'aa{sv}')],
      action: 'look',
      about:
        'The last commits (at most 100) that touched a path or what is below it, newest first. Of one that the caller may not see, only that it was and when (`withheld`), and that beside visible ones of the same path; a commit tells at most 1000 paths, `more` counts the others.',
    },
    Doctor: {
      in: [],
      out: [arg('features', 'aa{sv}')],
      action: 'look',
      about: 'What this host has and lacks, as it was found at most a minute ago.',
    },
    Probe: {
      in: [],
      out: [arg('features', 'aa{sv}')],
      action: 'administer',
      about: 'The same, found anew.',
    },
    Collect: {
      in: [],
      out: [arg('removed', 'a{sv}')],
      action: 'administer',
      about: 'Applies retention now.',
    },
    Reload: {
      in: [],
      out: [],
      action: 'administer',
      about: 'Reads configuration, profiles and policies again: all of them, or none if one is bad.',
    },
  },
  properties: {
    Version: { type: 's', about: 'Version of the daemon.' },
    Branches: { type: 'u', about: 'Number of branches that are not finished.' },
  },
  signals: {
    BranchAdded: { args: [arg('branch', 'o'), arg('id', 's')], about: 'A branch was created.' },
    BranchRemoved: {
      args: [arg('branch', 'o'), arg('id', 's')],
      about: 'A branch is finished and no longer listed.',
    },
    Event: {
      args: [arg('event', 'a{sv}')],
      about: 'Everything that happens; the kinds are those under Events.',
    },
    Progress: PROGRESS,
  },
}

export const BRANCH: BusInterface = {
  name: BRANCH_INTERFACE,
  methods: {
    Finish: {
      in: [],
      out: OUTCOME,
      action: 'manage',
      about: 'Waits for the agent and does what the branch asks for.',
    },
    Show: { in: [], out: RECORD, action: 'look', about: 'The whole record.' },
    Changes: {
      in: [],
      out: [arg('changeset', 'a{sv}')],
      action: 'look',
      about: 'What the branch would change, up to 10000 changes.',
    },
    ChangesPage: {
      in: [...SELECTION, arg('digest', 's'), arg('from', 't'), arg('limit', 't')],
      out: [arg('page', 'a{sv}')],
      action: 'look',
      about:
        'A part of what the branch, or the selected part of it, would change: `changeset` with at most `limit` (and 1000) changes from the one numbered `from` on, and the `next` number, absent at the end. `digest` is empty at first and then that of the first page: all pages are of one changeset.',
    },
    Select: {
      in: SELECTION,
      out: [arg('changeset', 'a{sv}')],
      action: 'look',
      about: 'The part that a selection would land, with its own digest; up to 10000 changes.',
    },
    Content: {
      in: [arg('base', 'u'), arg('path', 'ay'), arg('limit', 't')],
      out: [arg('content', 'a{sv}')],
      action: 'look',
      about: 'Both sides of one path, cut at the limit.',
    },
    Review: { in: [], out: OUTCOME, action: 'manage', about: 'Has the branch judged again.' },
    Rebase: {
      in: [arg('ours', 'as'), arg('theirs', 'as'), arg('drop', 'as')],
      out: OUTCOME,
      action: 'manage',
      about: 'Does the changes again over the present base, as a new held branch.',
    },
    Commit: { in: SELECTION, out: OUTCOME, action: 'manage', about: 'Lands what is allowed or approved.' },
    Approve: {
      in: [arg('digest', 's'), ...SELECTION, arg('why', 's')],
      out: OUTCOME,
      action: 'approve',
      about: 'Approves exactly this digest (empty: the one on record) and commits.',
    },
    Pick: {
      in: [arg('request', 'a{sv}')],
      out: OUTCOME,
      action: 'approve',
      about: 'A new, held branch with a part of the changes, also with single pieces of files.',
    },
    Reject: {
      in: [arg('why', 's')],
      out: RECORD,
      action: 'approve',
      about: 'Nothing of the branch will land.',
    },
    Discard: { in: [], out: RECORD, action: 'manage', about: 'Throws the branch away.' },
    Signal: {
      in: [arg('name', 's')],
      out: [arg('terminated', 'u'), arg('survivors', 'u')],
      action: 'manage',
      about: 'Sends a signal by name.',
    },
    Freeze: { in: [], out: RECORD, action: 'manage', about: 'Stops every process of the branch.' },
    Usage: {
      in: [],
      out: [arg('usage', 'a{sv}')],
      action: 'look',
      about:
        'What its agent uses of each budget at this moment (`budgets`: `used` and `limit` by kind) and waits for (`pressure`: `some10` and `full10` by cpu, memory and io); both are empty where none runs.',
    },
    Denials: {
      in: [],
      out: [arg('denials', 'aa{sv}')],
      action: 'look',
      about: 'What the branch was refused so far, and by which layer and rule.',
    },
    Queue: {
      in: [],
      out: [arg('requests', 'aa{sv}')],
      action: 'look',
      about: 'The requests of the branch, in order.',
    },
    QueueAct: {
      in: [arg('request', 's'), arg('action', 's'), arg('why', 's')],
      out: [arg('result', 'a{sv}')],
      action: 'approve',
      about: 'drop before the commit; resume or skip where the replay stopped.',
    },
    QueueBody: {
      in: [arg('request', 's'), arg('limit', 't')],
      out: [arg('content', 'a{sv}')],
      action: 'look',
      about: 'The beginning of the body of a request.',
    },
    QueueEdit: {
      in: [arg('request', 's'), arg('edit', 'a{sv}'), arg('why', 's')],
      out: OUTCOME,
      // Who may edit is an author, not a reviewer: nobody approves what they wrote themselves by this.
      action: 'manage',
      about:
        'Changes `method`, `url`, `headers` ({name, values}) or `body` of a request before the commit; a branch that was judged is judged again.',
    },
    NetTest: {
      in: [arg('method', 's'), arg('url', 's')],
      out: [arg('answer', 'a{sv}')],
      action: 'look',
      about: 'What the rules of the branch say to a request; nothing is sent.',
    },
    Extend: {
      in: [arg('budget', 's'), arg('by', 'd')],
      out: RECORD,
      action: 'approve',
      about: 'Gives more of one budget (seconds, bytes, counts); a branch that stands still for it goes on.',
    },
    Thaw: { in: [], out: RECORD, action: 'manage', about: 'Lets a frozen branch go on.' },
    Exec: {
      in: [arg('request', 'a{sv}')],
      out: [arg('socket', 's')],
      action: 'manage',
      about:
        'Runs a command in the branch. `request` and the frames on `socket` are as documented in docs/dbus.md; the command ends when the caller has left the socket.',
    },
    Attach: {
      in: [],
      out: [arg('socket', 's'), arg('terminal', 'b')],
      action: 'manage',
      about: 'Where the terminal or the pipes of the running agent can be attached.',
    },
    Output: {
      in: [arg('cursor', 't'), arg('limit', 't')],
      out: [arg('part', 'a{sv}')],
      action: 'look',
      about: 'What the agent wrote, as far as it is kept, from the cursor on (0: the oldest).',
    },
    Resize: {
      in: [arg('columns', 'q'), arg('rows', 'q')],
      out: [],
      action: 'manage',
      about: "Sets the size of the agent's terminal.",
    },
  },
  properties: {
    Id: { type: 's', about: 'Unique id.' },
    Name: { type: 's', about: 'Name, or empty.' },
    State: { type: 's', about: 'State of docs/lifecycle.md.' },
    Reason: { type: 's', about: 'Why it is in this state.' },
    Profile: { type: 's', about: 'Name of the profile.' },
    Command: { type: 'as', about: 'What runs in it.' },
    Bases: { type: 'as', about: 'The directories it was forked from.' },
    Requester: { type: 'u', about: 'uid on whose behalf it runs.' },
    Created: { type: 's', about: 'When it was created (ISO 8601).' },
    Updated: { type: 's', about: 'When it last changed (ISO 8601).' },
    Digest: { type: 's', about: 'Digest of the last changeset, or empty.' },
    Verdict: { type: 's', about: 'allow, hold, deny, or empty.' },
    Commit: { type: 's', about: 'Id of its commit, or empty.' },
    ExitStatus: { type: 'i', about: "The agent's exit status; -1 while it runs or when a signal ended it." },
  },
  signals: {
    StateChanged: {
      args: [arg('from', 's'), arg('to', 's'), arg('reason', 's')],
      about: 'The branch moved to another state.',
    },
    Progress: PROGRESS,
  },
}

export const signatureOf = (args: readonly BusArgument[]): string => args.map((one) => one.type).join('')

/** Introspection data of one interface, as the bus specification wants it. */
export function interfaceXml(face: BusInterface): string {
  const argument = ({ name, type }: BusArgument, direction: string): string =>
    `      <arg name="${name}" type="${type}"${direction === '' ? '' : ` direction="${direction}"`}/>\n`
  let xml = `  <interface name="${face.name}">\n`
  for (const [name, method] of Object.entries(face.methods)) {
    const args = [
      ...method.in.map((one) => argument(one, 'in')),
      ...method.out.map((one) => argument(one, 'out')),
    ]
    xml +=
      args.length === 0
        ? `    <method name="${name}"/>\n`
        : `    <method name="${name}">\n${args.join('')}    </method>\n`
  }
  for (const [name, { type }] of Object.entries(face.properties))
    xml += `    <property name="${name}" type="${type}" access="read"/>\n`
  for (const [name, { args }] of Object.entries(face.signals))
    xml += `    <signal name="${name}">\n${args.map((one) => argument(one, '')).join('')}    </signal>\n`
  return `${xml}  </interface>\n`
}
