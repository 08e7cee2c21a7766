// pure

/** What was noticed in the new content of one file. */
export interface ContentFinding {
  rule: string
  message: string
}
