// pure

/** What each of them opens; where one fails, none of those before it stays open. */
export function openAll<From>(
  from: readonly From[],
  open: (one: From) => number,
  close: (fd: number) => void,
): number[] {
  const opened: number[] = []
  try {
    for (const one of from) opened.push(open(one))
    return opened
  } catch (error) {
    for (const fd of opened) close(fd)
    throw error
  }
}
