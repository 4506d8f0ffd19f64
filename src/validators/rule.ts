/**
 * The rule of a finding as data, which the command line puts into words. Operators' calls and routes of features
 * have it, and no other gateway bundles it.
 */
import * as z from 'zod/mini'
import { inEnglish } from './english.ts'
import type { RuleOf } from './findings.ts'

/** Members of issues that describe the schema, and never the value. */
const RULE_MEMBERS = [
  'origin',
  'minimum',
  'maximum',
  'inclusive',
  'exact',
  'divisor',
  'values',
  'expected',
  'format',
  'pattern',
  'prefix',
]

/** Returns the rule of an issue, unless its schema has a message of its own. */
export const ruleOf: RuleOf = (issue) => {
  const { code, message, input } = issue
  if (code === 'unrecognized_keys') return {}
  // `reportInput` keeps what a raw issue has.
  const standard = (inEnglish()?.error ?? z.config().localeError)?.(issue as z.core.$ZodRawIssue)
  if (message !== (typeof standard === 'string' ? standard : standard?.message)) return {}
  const members = Object.entries(issue).filter(
    ([name, value]) => RULE_MEMBERS.includes(name) && typeof value !== 'bigint',
  )
  const isAbsent = input === undefined
  return { rule: { code, ...Object.fromEntries(members), ...(isAbsent && { isAbsent }) } }
}
