// pure

import { fromEntries } from '../contract/bus-values.ts'
import type { QueueEdit } from '../contract/engine.ts'
import { PuzzledError } from '../lib/errors.ts'

const KNOWN: ReadonlySet<string> = new Set(['method', 'url', 'headers', 'body'])

/** What a caller sends is a tree of any shape: everything that is no edit is refused here. */
export function queueEditOf(entries: unknown): QueueEdit {
  const found = fromEntries(entries as [string, unknown][]) as Readonly<Record<string, unknown>>
  const unknown = Object.keys(found).find((key) => !KNOWN.has(key))
  if (unknown !== undefined) throw wrong(`"${unknown}" is nothing that a request has`)
  const { method, url, headers, body } = found
  return {
    ...(method === undefined ? {} : { method: text('method', method) }),
    ...(url === undefined ? {} : { url: text('url', url) }),
    ...(headers === undefined ? {} : { headers: list('headers', headers).map(headerOf) }),
    ...(body === undefined ? {} : { body: bytes(body) }),
  }
}

function headerOf(value: unknown): { name: string; values: readonly string[] } {
  const { name, values } = (value ?? {}) as Readonly<Record<string, unknown>>
  return { name: text('name', name), values: list('values', values).map((one) => text('value', one)) }
}

function text(what: string, value: unknown): string {
  if (typeof value === 'string') return value
  throw wrong(`"${what}" of an edit is a text`)
}

function list(what: string, value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw wrong(`"${what}" of an edit is a list`)
}

function bytes(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value
  throw wrong('The body of an edit is bytes')
}

const wrong = (message: string): PuzzledError => new PuzzledError('usage', message)
