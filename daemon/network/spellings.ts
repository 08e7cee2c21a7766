// pure

/**
 * The forms in which servers echo what they were given: as it is, escaped for a URL, JSON or HTML as the common
 * libraries do it, in hex and in base64. What two of them write alike is there once, so a plain token has few.
 */
export function spellings(secret: string): readonly string[] {
  const escaped = [
    secret,
    ...PERCENT.flatMap((plain) => [percent(secret, plain, 'upper'), percent(secret, plain, 'lower')]),
    ...JSON_ESCAPED.map((style) => json(secret, style)),
    ...HTML.map((names) => secret.replace(/[&<>"'+=`/]/g, (char) => names[char] ?? char)),
  ]
  const bytes = Buffer.from(secret)
  const hex = bytes.toString('hex')
  const all = [...escaped.flatMap(asRead), hex, hex.toUpperCase(), ...base64(bytes)]
  return [...new Set(all)]
}

/** Answers are searched byte by byte: a character is the byte that it was sent as, or those that UTF-8 has for it. */
const asRead = (text: string): readonly string[] => [text, Buffer.from(text).toString('latin1')]

/** What encoders leave as it is: strict ones, those of browsers, and those that keep a path together. */
const PERCENT = [/[A-Za-z0-9_.~-]/, /[A-Za-z0-9_.~!'()*-]/, /[A-Za-z0-9_.~/-]/]

const percent = (text: string, plain: RegExp, hex: 'upper' | 'lower'): string =>
  [...text].map((char) => (plain.test(char) ? char : percentOf(char, hex))).join('')

function percentOf(char: string, hex: 'upper' | 'lower'): string {
  const escaped = [...Buffer.from(char)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
  return hex === 'upper' ? escaped.toUpperCase() : escaped
}

interface JsonEscape {
  /** Written as `\u` and four digits. */
  readonly coded: RegExp
  readonly hex: 'upper' | 'lower'
  readonly slash: boolean
}

/** Plain, PHP, Go and Gson, .NET. */
const JSON_ESCAPED: readonly JsonEscape[] = [
  { coded: /(?!)/g, hex: 'lower', slash: false },
  { coded: /(?!)/g, hex: 'lower', slash: true },
  { coded: /[<>&]/g, hex: 'lower', slash: false },
  { coded: /[<>&=']/g, hex: 'lower', slash: false },
  { coded: /[<>&+'`]/g, hex: 'upper', slash: false },
]

function json(text: string, { coded, hex, slash }: JsonEscape): string {
  const plain = JSON.stringify(text).slice(1, -1)
  const code = (char: string): string => {
    const digits = char.charCodeAt(0).toString(16).padStart(4, '0')
    return `\\u${hex === 'upper' ? digits.toUpperCase() : digits}`
  }
  const escaped = plain.replace(coded, code)
  return slash ? escaped.replaceAll('/', '\\/') : escaped
}

const HTML: readonly Readonly<Record<string, string>>[] = [
  { '&': '&amp;', '<': '&lt;', '>': '&gt;' },
  { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' },
  { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' },
  { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#039;' },
  { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#x27;' },
  { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&#34;', "'": '&#39;' },
  { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&#34;', "'": '&#39;', '+': '&#43;' },
  {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
    "'": '&#39;',
    '/': '&#x2F;',
    '`': '&#x60;',
    '=': '&#x3D;',
  },
]

/** By itself, and inside of a longer text: there it stands at one of three places between the digits. */
function base64(bytes: Buffer): readonly string[] {
  const alone = bytes.toString('base64')
  const within = [0, 1, 2].map((before) => {
    const digits = Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .replace(/=+$/, '')
    // The digits at both ends belong to the neighbours, too.
    const whole = Math.floor(((before + bytes.length) * 8) / 6)
    return digits.slice(Math.ceil((before * 8) / 6), whole)
  })
  const standard = [alone, alone.replace(/=+$/, ''), ...within]
  return [...standard, ...standard.map((text) => text.replaceAll('+', '-').replaceAll('/', '_'))]
}
