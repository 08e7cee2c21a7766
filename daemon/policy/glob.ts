// pure

/**
 * Globs over absolute targets: `*` and `?` stay within a component, `**` does not, `{a,b}` is a choice. A pattern
 * also matches everything below what it names: whoever refuses a directory refuses its content.
 */
export function globExpression(pattern: string): RegExp {
  let source = ''
  let depth = 0
  for (let at = 0; at < pattern.length; at++) {
    const char = pattern[at] ?? ''
    if (char === '*' && pattern[at + 1] === '*') {
      // `/**/` also stands for a single slash: `/a/**/b` matches `/a/b`.
      const slash = pattern[at + 2] === '/' && (at === 0 || pattern[at - 1] === '/')
      source += slash ? '(?:[^/]+/)*' : '.*'
      at += slash ? 2 : 1
    } else if (char === '*') source += '[^/]*'
    else if (char === '?') source += '[^/]'
    else if (char === '{') {
      source += '(?:'
      depth++
    } else if (char === '}' && depth > 0) {
      source += ')'
      depth--
    } else if (char === ',' && depth > 0) source += '|'
    else source += char.replace(/[\\^$.|+()[\]{}/]/g, '\\$&')
  }
  return new RegExp(`^(?:${source}${')'.repeat(depth)})(?:/.*)?$`, 's')
}
