/** Findings: why an input does not match its schema, as the caller receives it. */

import * as z from 'zod/mini'
import { textsReadAsOthers, twinOf } from '../http/exact-numbers.ts'
import type { InputError } from '../problems/reasons.ts'
import { inEnglish } from './english.ts'

/** Without a limit, an invalid body with a million keys would produce a million findings. */
export const MAX_FINDINGS = 20

const NONE: readonly InputError[] = []

/** Returns the rule of an issue. For issues with their input. */
export type RuleOf = (issue: z.core.$ZodIssue) => Pick<InputError, 'rule'>

/** The parsed value, or why there is none. */
export interface Checked {
  readonly findings: readonly InputError[]
  /** The value as the schema transforms it. Undefined if there are findings. */
  readonly value: unknown
}

/**
 * Parses `value` with `schema`, or returns why it does not match: at most 20 paths and rules, never
 * the values. `at` is the JSON Pointer of `value` within the input. `ruleOf` adds the rules as data.
 */
export function checked(
  where: InputError['in'],
  schema: z.core.$ZodType,
  value: unknown,
  at = '',
  ruleOf?: RuleOf,
): Checked {
  const context = inEnglish()
  const parsed = z.safeParse(schema, value, ruleOf ? { ...context, reportInput: true } : context)
  if (parsed.success) {
    const paths = pathsOfOthers(where, schema, value, parsed.data)
    if (paths.length === 0) return { findings: NONE, value: parsed.data }
    const inexact = paths.slice(0, MAX_FINDINGS)
    const message = 'Must be a number that a double-precision number represents'
    return {
      findings: inexact.map((path) => ({ in: where, path: at + pointer(path), message })),
      value: undefined,
    }
  }
  const findings = parsed.error.issues.slice(0, MAX_FINDINGS).map((issue) => ({
    in: where,
    path: at + pointer(issue.path),
    message: messageOf(issue),
    ...ruleOf?.(issue),
  }))
  return { findings, value: undefined }
}

/** Returns the paths of numbers that the schema reads, and that an origin may read as others. */
function pathsOfOthers(
  where: InputError['in'],
  schema: z.core.$ZodType,
  value: unknown,
  output: unknown,
): readonly (readonly PropertyKey[])[] {
  const paths: (readonly PropertyKey[])[] = textsReadAsOthers(value, output, where === 'body')
  const twin = twinOf(value)
  if (twin === undefined) return paths
  try {
    // A schema that accepts anything in the place of a number does not read it.
    const { error } = z.safeParse(schema, twin)
    return [...paths, ...(error?.issues ?? []).map(({ path }) => path)]
  } catch {
    // A transformation of the policy read it.
    return [...paths, []]
  }
}

/** Returns the findings of {@link checked}. */
export function findingsOf(...input: Parameters<typeof checked>): readonly InputError[] {
  return checked(...input).findings
}

/** zod's message for unknown keys quotes them. A response must not repeat the caller's input. */
function messageOf(issue: z.core.$ZodIssue): string {
  return issue.code === 'unrecognized_keys' ? 'Unknown keys are not allowed' : issue.message
}

/** RFC 6901. */
export function pointer(path: readonly PropertyKey[]): string {
  return path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}
