// pure

export interface EnvironmentInput {
  /** What the profile let pass and set. */
  readonly granted: Readonly<Record<string, string>>
  /** What the branch's network needs the agent to know (proxy, certificates). */
  readonly network: Readonly<Record<string, string>>
  readonly user: string
  readonly home: string
  readonly shell: string
  readonly terminal: boolean
}

const SEARCH_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/**
 * The agent's environment: only names that the profile grants, and what a program cannot do without. The network's
 * names win: an agent that keeps the caller's proxy would only meet closed doors.
 */
export function agentEnvironment(input: EnvironmentInput): Record<string, string> {
  return {
    PATH: SEARCH_PATH,
    HOME: input.home,
    USER: input.user,
    LOGNAME: input.user,
    SHELL: input.shell,
    ...(input.terminal ? { TERM: 'xterm-256color' } : {}),
    ...input.granted,
    ...input.network,
  }
}
