// pure

/** The durable file calls that policy records need; the store's own adapter has them all. */
export interface RecordFiles {
  /** Null when there is no such file. */
  read(path: string): Promise<Buffer | null>
  /** The whole file is old or new after a power cut; durable when it resolves. */
  writeRecord(path: string, bytes: Uint8Array): Promise<void>
  /** Durable when it resolves; a torn last line can be left behind by a power cut. */
  append(path: string, bytes: Uint8Array): Promise<void>
  /** Names in a directory. */
  list(path: string): Promise<string[]>
}
