/** Refuses text with control characters, invalid Unicode or names of an object's prototype. */
import { Denied } from '../errors.ts'
import type { TextCheck } from '../problems/checks.ts'

/** The first word of a check's name in the audit trail. */
export type Where = 'query' | 'body'

/** Unicode category Cc without tab, line feed and carriage return, which are common in text. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it looks for
const CONTROL_IN_TEXT = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it looks for
const CONTROL = /[\x00-\x1f\x7f-\x9f]/
/** Names by which an assignment in JavaScript changes a shared prototype. */
const PROTOTYPE_NAMES: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])
/** Separates the steps of `a[b].c`, as parsers of nested parameters do. */
const STEP = /[[\].]/

/** Returns the refusal (400) with the precise reason `<where>_<what>`. */
export function malformed(where: Where, what: TextCheck): Denied {
  return new Denied({ code: 'malformed_request', check: `${where}_${what}` })
}

/**
 * Refuses text with control characters or lone surrogates, which have no UTF-8. Accepts any
 * language and any code: it does NOT check what a text could mean to another program.
 */
export function refuseText(text: string, where: Where): void {
  if (CONTROL_IN_TEXT.test(text)) throw malformed(where, 'control')
  if (!text.isWellFormed()) throw malformed(where, 'surrogate')
}

/** As {@link refuseText}, for text of one line: a name, or a value in a URL. */
export function refuseLine(text: string, where: Where): void {
  if (CONTROL.test(text)) throw malformed(where, 'control')
  if (!text.isWellFormed()) throw malformed(where, 'surrogate')
}

/** Refuses a member's name that belongs to an object's prototype. */
export function refusePrototypeName(name: string, where: Where): void {
  if (PROTOTYPE_NAMES.has(name)) throw malformed(where, 'prototype_name')
}

/** As {@link refusePrototypeName}, for the steps of a parameter such as `a[b]` or `a.b`. */
export function refusePrototypeStep(name: string, where: Where): void {
  for (const step of name.split(STEP)) refusePrototypeName(step, where)
}
