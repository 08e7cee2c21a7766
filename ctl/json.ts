// pure

/** One document per line. BigInts are decimal strings; bytes are base64. */
export function jsonText(value: unknown): string {
  return `${JSON.stringify(value, (_key, item: unknown) => {
    if (typeof item === 'bigint') return item.toString()
    if (item instanceof Uint8Array) return Buffer.from(item).toString('base64')
    return item
  })}\n`
}
