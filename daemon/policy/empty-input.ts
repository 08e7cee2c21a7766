// pure

/** The input document of a changeset without changes: what a policy is tried with when it is loaded. */
export const EMPTY_INPUT = JSON.stringify({
  version: 1,
  digest: '',
  branch: {
    id: '2222222222',
    base: ['/home/u/app'],
    profile: 'standard',
    enforce: 'enforce',
    requester: { uid: 1000, gid: 1000, name: 'u' },
    command: ['true'],
    started: '2026-01-01T00:00:00.000Z',
    ended: '2026-01-01T00:00:01.000Z',
    exit: { code: 0, signal: null, cause: 'exited', good: true, summary: 'exit status 0' },
  },
  totals: { files: 0, bytes: 0, additions: 0, modifications: 0, deletions: 0 },
  requests: [],
  contents: { available: true, examined: 0, partly: 0 },
  usage: {},
  history: { tier: null, recent: [] },
  now: '2026-01-01T00:00:02.000Z',
  settings: {
    allowSetuid: false,
    maxFiles: 1,
    maxBytes: 1,
    maxDeletions: 1,
    onAgentFailure: 'hold',
    paths: [],
  },
  index: { count: 0, names: {}, extensions: {}, segments: {}, directories: [], flags: {}, collisions: [] },
  changes: [],
})
