// pure
import { z } from 'zod'
import { isTooDeep } from './glob.ts'

/** Building blocks of the YAML schemas: every message completes the words "found X, expected …". */

export const why = z
  .string({ error: 'a reason ("why"): one sentence that says what this grant is for' })
  .trim()
  .min(8, 'a reason of at least 8 characters')
  .max(400, 'a reason of at most 400 characters')
  .describe('Why this is granted: one sentence for the person who reviews the profile.')

const plainPath = (text: string): boolean =>
  /^(~\/|\/)/.test(text) &&
  !/[\0-\x1f\x7f]/.test(text) &&
  (text === '/' || !text.endsWith('/')) &&
  !text.includes('//') &&
  !text.split('/').some((part) => part === '.' || part === '..')

export const path = z
  .string()
  .max(4095, 'a path of at most 4095 bytes')
  .refine(plainPath, 'an absolute path or one below "~/", without "..", "//" or a slash at the end')
  .refine((text) => !/[*?[\]{}]/.test(text), 'a path without wildcards')
  .describe('Absolute path on the host; "~/" is the requester\'s home.')

const isShallow = (text: string): boolean => !isTooDeep(text)
const SHALLOW = 'a pattern with at most 64 choices within each other'

/** A glob over anything. */
export const anyPattern = z.string().min(1).max(4095).refine(isShallow, SHALLOW)

export const pathPattern = z
  .string()
  .max(4095, 'a pattern of at most 4095 bytes')
  .refine(plainPath, 'an absolute pattern or one below "~/", without "..", "//" or a slash at the end')
  .refine(isShallow, SHALLOW)
  .describe('Glob over absolute targets: "*" stays within a directory, "**" does not.')

export const oneOrMore = <Item extends z.ZodType>(item: Item) =>
  z
    .union([item, z.array(item).min(1, 'at least one entry')])
    .transform((value) => (Array.isArray(value) ? value : [value]) as z.output<Item>[])

const SIZE_UNITS: Record<string, number> = { '': 1, K: 1e3, M: 1e6, G: 1e9, T: 1e12 }
const TIME_UNITS: Record<string, number> = { '': 1, s: 1, m: 60, h: 3600, d: 86_400 }

export const bytes = z
  .union([z.number(), z.string()])
  .transform((value, context) => {
    const match = /^(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?$/.exec(String(value).trim())
    const [, amount = '', unit = '', binary = ''] = match ?? []
    const factor = binary === '' ? SIZE_UNITS[unit] : 1024 ** ' KMGT'.indexOf(unit)
    return whole(
      match === null || (binary !== '' && unit === '') ? Number.NaN : Number(amount) * (factor ?? 0),
      context,
      'a size such as 512MiB or 2GB',
    )
  })
  .describe('Bytes, or a size with a unit: 64KiB, 512MiB, 2GB.')

export const seconds = z
  .union([z.number(), z.string()])
  .transform((value, context) => {
    const match = /^(\d+(?:\.\d+)?)\s*([smhd]?)$/.exec(String(value).trim())
    const [, amount = '', unit = ''] = match ?? []
    return whole(
      match === null ? Number.NaN : Number(amount) * (TIME_UNITS[unit] ?? 0),
      context,
      'a duration such as 90s, 30m or 2h',
    )
  })
  .describe('Seconds, or a duration with a unit: 90s, 30m, 2h, 1d.')

function whole(value: number, context: z.RefinementCtx, expected: string): number {
  const rounded = Math.ceil(value)
  if (Number.isSafeInteger(rounded) && rounded >= 1) return rounded
  context.addIssue({ code: 'custom', message: expected })
  return z.NEVER
}

export const count = z
  .int('a whole number')
  .min(0, 'a number of at least 0')
  .max(Number.MAX_SAFE_INTEGER, 'a smaller number')

export const port = z
  .int('a port number')
  .min(1, 'a port of at least 1')
  .max(65_535, 'a port of at most 65535')
  .describe('A TCP port.')

const LABEL = '(?!-)[a-z0-9_-]{1,63}(?<!-)'
export const host = z
  .string()
  .max(253, 'a host name of at most 253 characters')
  .regex(
    new RegExp(`^(?:\\*\\.(?:${LABEL}\\.)+${LABEL}|(?:${LABEL}\\.)*${LABEL}|\\[[0-9a-f:.]+\\])$`),
    'a lower-case host name, "*.name.tld" with at least two labels behind the star, or an address',
  )
  .describe('Exact name, or "*.example.com"; at least two labels stand behind the star.')

export const variable = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*\*?$/, 'a variable name, or a prefix that ends in "*"')
  .describe('The name of a variable of the environment.')
