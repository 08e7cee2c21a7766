let dated = { second: 0, text: '' }

/** The time as headers say it; made once a second. */
export function httpDate(): string {
  const now = Date.now()
  const second = Math.floor(now / 1000)
  if (second !== dated.second) dated = { second, text: new Date(now).toUTCString() }
  return dated.text
}
