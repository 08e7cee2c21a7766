// pure

/** Whether one grant lies within another. Uncertain = no: the author of a profile can always write it plainer. */

export const pathWithin = (outer: string, inner: string): boolean =>
  outer === inner || outer === '/' || inner.startsWith(`${outer}/`)

export function hostWithin(outer: string, inner: string): boolean {
  if (outer === inner) return true
  return outer.startsWith('*.') && inner.length >= outer.length && inner.endsWith(outer.slice(1))
}

export const variableWithin = (outer: string, inner: string): boolean =>
  outer === inner || (outer.endsWith('*') && inner.startsWith(outer.slice(0, -1)))

/** Globs are compared only where the answer is plain: equal, or below a pattern that ends in `/**`. */
export function globWithin(outer: string, inner: string): boolean {
  if (outer === inner || outer === '/**') return true
  if (!outer.endsWith('/**')) return false
  const stem = outer.slice(0, -2)
  return !/[*?[{\\]/.test(stem) && inner.startsWith(stem)
}

export const listWithin = <Item>(
  outer: readonly Item[] | 'any',
  inner: readonly Item[] | 'any',
  within: (outer: Item, inner: Item) => boolean = Object.is,
): boolean => {
  if (outer === 'any') return true
  return inner !== 'any' && inner.every((item) => outer.some((each) => within(each, item)))
}
