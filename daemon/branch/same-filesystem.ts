// pure

/** The filesystem of a base, as it was found at some moment. */
export interface FilesystemMark {
  dev: number
  /** What stays the same after a reboot and is nobody else's; absent where the kernel does not tell. */
  filesystemId?: string
}

/**
 * A device number is only lent: after an unmount the next filesystem gets it (loop images, every tmpfs), and the same
 * filesystem another one. It counts only where nothing better is known of both.
 */
export const isSameFilesystem = (then: FilesystemMark, now: FilesystemMark): boolean =>
  then.filesystemId !== undefined && now.filesystemId !== undefined
    ? then.filesystemId === now.filesystemId
    : then.dev === now.dev

/** Without a key for what is not known: records are plain data. */
export const filesystemMark = (dev: number, filesystemId: string | undefined): FilesystemMark =>
  filesystemId === undefined ? { dev } : { dev, filesystemId }
