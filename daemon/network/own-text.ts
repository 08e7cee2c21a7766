// pure

/** V8 copies what is shorter; anything else is a view into the text that it was cut from, and keeps all of that. */
const COPIED = 13

/**
 * The same text without what it was cut from. A name of twenty characters is cut from a head of up to 64 KiB: what is
 * kept for longer than its request must be its own, or an agent fills the memory with heads that nobody counts.
 * For text of one byte per character, as heads are read.
 */
export const ownText = (text: string): string =>
  text.length < COPIED ? text : Buffer.from(text, 'latin1').toString('latin1')
