// pure

/** Codes of RFC 9113. */
export const CODE = {
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  INTERNAL_ERROR: 2,
  FLOW_CONTROL_ERROR: 3,
  STREAM_CLOSED: 5,
  FRAME_SIZE_ERROR: 6,
  REFUSED_STREAM: 7,
  COMPRESSION_ERROR: 9,
  ENHANCE_YOUR_CALM: 11,
} as const

export type Code = (typeof CODE)[keyof typeof CODE]

/** What an agent sent ends its connection. */
export class Http2Fault extends Error {
  readonly code: Code

  constructor(code: Code, what: string) {
    super(what)
    this.name = 'Http2Fault'
    this.code = code
  }
}
