// pure

/**
 * Times of files are 64 bits of nanoseconds wherever they are written down. Read as signed they would end in 2262, which is
 * within reach of ext4 (1901 to 2446) and XFS (1901 to 2486): a file with such a time could not be told, or committed. So they
 * count from where those filesystems begin. What btrfs and tmpfs keep beyond either end becomes that end.
 */
const EARLIEST = -(2n ** 31n) * 1_000_000_000n
const SPAN = 2n ** 64n
const LATEST = EARLIEST + SPAN - 1n

export const asFileTime = (ns: bigint): bigint => (ns < EARLIEST ? EARLIEST : ns > LATEST ? LATEST : ns)

/** As a signed number of 64 bits. */
export const packTime = (ns: bigint): bigint => BigInt.asIntN(64, ns)

export const unpackTime = (packed: bigint): bigint => (packed < EARLIEST ? packed + SPAN : packed)

/** Seconds beyond which filesystems keep nothing: small inodes of ext4 and old XFS, ext4, XFS; and before which. */
const ENDS = [2n ** 31n - 1n, 2n ** 34n - 2n ** 31n - 1n, 16_299_260_425n].map((end) => end * 1_000_000_000n)

/** What filesystems keep of a time: all of it, or as much as FAT, NTFS and small inodes of ext4 have room for. */
const GRAINS = [1n, 100n, 1_000n, 1_000_000n, 1_000_000_000n, 2_000_000_000n]

/** Whether a time that was set is what a filesystem now shows. */
export const isTime = (shown: bigint, set: bigint): boolean =>
  GRAINS.some((grain) => set - (set % grain) === shown) ||
  (ENDS.includes(shown) && set > shown) ||
  (shown === EARLIEST && set < shown)
