import { z } from 'zod'

/** A schema as rows that a person can read: one per key, nested keys behind their parents. */

interface Schema {
  type?: string | string[]
  description?: string
  default?: unknown
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  anyOf?: Schema[]
  oneOf?: Schema[]
  enum?: unknown[]
  const?: unknown
}

export interface Field {
  /** `mounts[].path` */
  name: string
  type: string
  optional: boolean
  about: string
  default?: unknown
}

const variants = (schema: Schema): Schema[] | undefined => schema.anyOf ?? schema.oneOf
const inner = (schema: Schema): Schema => variants(schema)?.find(({ type }) => type !== 'null') ?? schema

function typeOf(schema: Schema): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum !== undefined) return schema.enum.map(String).join(' | ')
  const several = variants(schema)
  if (several !== undefined) return [...new Set(several.map(typeOf))].join(' or ')
  if (schema.type === 'array') return `list of ${schema.items === undefined ? 'pairs' : typeOf(schema.items)}`
  return [schema.type ?? 'any'].flat().join(' or ')
}

/** The description of a key, or of what it holds. */
const aboutOf = (schema: Schema): string =>
  schema.description ??
  variants(schema)?.find(({ description }) => description !== undefined)?.description ??
  ''

function rows(schema: Schema, prefix: string): Field[] {
  return Object.entries(schema.properties ?? {}).flatMap(([key, value]) => {
    const name = prefix === '' ? key : `${prefix}.${key}`
    const below = inner(value)
    const item = below.items === undefined ? below : inner(below.items)
    const more =
      item.properties === undefined ? [] : rows(item, below.items === undefined ? name : `${name}[]`)
    const field: Field = {
      name,
      type: typeOf(value),
      optional: schema.required?.includes(key) !== true,
      about: aboutOf(value),
    }
    return [value.default === undefined ? field : { ...field, default: value.default }, ...more]
  })
}

export const fieldsOf = (schema: z.ZodType): Field[] =>
  rows(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Schema, '')
