// pure

/**
 * A request that does not leave, as the agent sees it (`application/problem+json`, RFC 9457) and as the operator
 * reads it in `events`. The rule names what refused; `help` is the grant that would change it.
 */
export class NetworkDenied extends Error {
  override readonly name = 'NetworkDenied'
  readonly status: number
  readonly rule: string
  readonly help: string | undefined
  /** Seconds after which another try makes sense. */
  readonly retryAfter: number | undefined

  constructor(
    status: number,
    rule: string,
    message: string,
    details: { help?: string | undefined; cause?: unknown; retryAfter?: number } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.status = status
    this.rule = rule
    this.help = details.help
    this.retryAfter = details.retryAfter
  }
}

const TITLES: Readonly<Record<number, string>> = {
  400: 'The request is malformed or ambiguous',
  403: 'The branch may not do this',
  405: 'The method is never allowed',
  408: 'The request came too slowly',
  413: 'The body is too large',
  414: 'The URL is too long',
  421: 'The request names another host than its connection',
  429: 'A budget of the branch is used up',
  431: 'The headers are too large',
  501: 'The gate does not speak this protocol',
  502: 'The other end cannot be reached or does not speak HTTP',
  503: 'The queue or the proxy of the branch is full',
  504: 'The other end did not answer in time',
}

export const titleOf = (status: number): string => TITLES[status] ?? 'The request was refused'

/** What the agent gets. Tools show bodies to models, so it says in words what happened and what would help. */
export function problemBody(denied: NetworkDenied): string {
  const problem = {
    type: `urn:puzzled:denial:${denied.rule}`,
    title: titleOf(denied.status),
    status: denied.status,
    detail: denied.message,
    rule: denied.rule,
    ...(denied.help === undefined ? {} : { help: denied.help }),
  }
  return `${JSON.stringify(problem)}\n`
}

export function problemHeaders(denied: NetworkDenied, length: number): Record<string, string> {
  return {
    'content-type': 'application/problem+json',
    'content-length': String(length),
    'cache-control': 'no-store',
    ...(denied.retryAfter === undefined ? {} : { 'retry-after': String(denied.retryAfter) }),
  }
}
