// pure

/** V8 copies what is shorter; anything else is a view into the text that it was cut from, and keeps all of that. */
const COPIED = 13

/**
 * The same text without what it was cut from. A name of twenty characters is cut from a head of up to 64 KiB: what is
 * kept for longer than its request must be its own, or an agent fills the memory with heads that nobody counts.
 * Heads are read with one byte per character. Text with others, which a person typed, comes back as it is: cut down to
 * a byte, `š` would be `a`, and the name of another host.
 */
export function ownText(text: string): string {
  if (text.length < COPIED) return text
  const own = Buffer.from(text, 'latin1').toString('latin1')
  return own === text ? own : text
}
