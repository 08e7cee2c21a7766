// pure

/** What the agent of a proof tries to do to the host; `native/attack.c` does it, one act per process. */
export const ACTS = {
  read: 'read a file outside',
  write: 'write a file outside that everybody may write',
  execute: 'execute a program outside',
  socket: 'connect to a service by its path',
  abstract: 'connect to a service by an abstract name',
  tcp: 'connect to a TCP service of the host',
  packet: 'send raw packets',
  kill: 'signal a process of the same user',
  trace: 'read the memory of a process of the same user',
  mount: 'mount a filesystem',
  userns: 'mount a filesystem in a user namespace of its own',
  device: 'make a device node',
} as const
export type Act = keyof typeof ACTS

export const ACT_NAMES = Object.keys(ACTS) as Act[]

/** What each act is done to. */
export type Targets = Readonly<Record<Act, string>>

/** `OK`, the name of an errno or of a signal; what said nothing was prevented in a way that we did not foresee. */
export type ActResults = Readonly<Record<Act, string>>

/** The lines of the program. Numbers are turned into names by `nameOf`. */
export function readResults(
  output: string,
  nameOf: (kind: 'errno' | 'signal', value: number) => string,
): ActResults {
  const said = new Map<string, string>()
  for (const [, act = '', result = ''] of output.matchAll(/^(\w+) (OK|\d+|SIG\d+)$/gm))
    said.set(
      act,
      result === 'OK'
        ? result
        : result.startsWith('SIG')
          ? nameOf('signal', Number(result.slice(3)))
          : nameOf('errno', Number(result)),
    )
  const results = ACT_NAMES.map((act) => [act, said.get(act) ?? 'nothing'])
  return Object.fromEntries(results) as Record<Act, string>
}
