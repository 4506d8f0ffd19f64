/** Text from strangers: what no reader of it expects, and some act on. */
import { Denied } from '../errors.ts'

/** Where something was found; the first word of a check's name in the audit trail. */
export type Where = 'query' | 'body'

/** Cc but tab, line feed and carriage return, which stand in every text of several lines. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it looks for
const CONTROL_IN_TEXT = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it looks for
const CONTROL = /[\x00-\x1f\x7f-\x9f]/
/** Names by which an assignment in JavaScript reaches what all objects share. */
const PROTOTYPE_NAMES: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])
/** Between the steps of `a[b].c`, as parsers of nested parameters read it. */
const STEP = /[[\].]/

/** The refusal (400) whose precise reason is `<where>_<what>`. */
export function malformed(where: Where, what: string): Denied {
  return new Denied({ code: 'request_malformed', check: `${where}_${what}` })
}

/**
 * Refuses text with control characters or halves of surrogate pairs, which have no UTF-8. Takes
 * any language and any code: it does NOT look for what a text might mean to somebody.
 */
export function refuseText(text: string, where: Where): void {
  if (CONTROL_IN_TEXT.test(text)) throw malformed(where, 'control')
  if (!text.isWellFormed()) throw malformed(where, 'surrogate')
}

/** As {@link refuseText}, for what has one line: a name, or a value in a URL. */
export function refuseLine(text: string, where: Where): void {
  if (CONTROL.test(text)) throw malformed(where, 'control')
  if (!text.isWellFormed()) throw malformed(where, 'surrogate')
}

/** Refuses a member's name that is one of an object's prototype. */
export function refusePrototypeName(name: string, where: Where): void {
  if (PROTOTYPE_NAMES.has(name)) throw malformed(where, 'prototype_name')
}

/** As {@link refusePrototypeName}, for the steps of a parameter such as `a[b]` or `a.b`. */
export function refusePrototypeStep(name: string, where: Where): void {
  for (const step of name.split(STEP)) refusePrototypeName(step, where)
}
