/** Findings of a gateway for people: the rules of its schemas in words, with a remedy. */
import type { Finding, InputRule } from './failure.ts'

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
] as const
const TYPES: Readonly<Record<string, string>> = {
  string: 'text',
  int: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
}
const FORMATS: Readonly<Record<string, string>> = {
  url: 'a URL',
  uuid: 'a UUID',
  email: 'an email address',
  datetime: 'an ISO datetime',
  date: 'an ISO date',
}
/** What a text or a list has, in the singular. */
const SIZES: Readonly<Record<string, string>> = { string: 'character', array: 'item' }

/**
 * Returns a finding whose message says what the value must be, and where ids are listed. `listing` is the
 * command that lists the records of the request. A finding without a rule stays the same.
 */
export function plainFinding({ rule, ...finding }: Finding, listing: string): Finding {
  return rule === undefined ? finding : { ...finding, message: plain(finding, rule, listing) }
}

function plain(
  { in: part, path, message }: Finding,
  { code, origin, values, expected, format, pattern, prefix, divisor, ...rule }: InputRule,
  listing: string,
): string {
  switch (code) {
    case 'too_small':
      return size(path, origin, rule.minimum, rule.inclusive ? 'at least' : 'more than', rule.exact)
    case 'too_big':
      return size(path, origin, rule.maximum, rule.inclusive ? 'at most' : 'less than', rule.exact)
    case 'not_multiple_of':
      return `must be a multiple of ${divisor}`
    case 'invalid_value': {
      const names = [...(values ?? [])]
      const last = names.pop()
      return `must be ${names.length === 0 ? last : `${names.join(', ')} or ${last}`}`
    }
    case 'invalid_type':
      return rule.isAbsent ? 'is missing' : `must be ${TYPES[expected ?? ''] ?? expected}`
    case 'invalid_format':
      if (format === 'uuid' && part === 'params')
        return `must be an id, which is a UUID; \`${listing}\` shows the ids`
      if (format === 'regex') return `must match pattern ${pattern}`
      if (format === 'starts_with') return `must start with "${prefix}"`
      return `must be ${FORMATS[format ?? ''] ?? format}`
    case 'invalid_union':
      return 'is not valid; see --help'
    default:
      return message
  }
}

function size(
  path: string,
  origin = 'number',
  limit = 0,
  bound: string,
  isExact: boolean | undefined,
): string {
  const unit = SIZES[origin]
  const words = isExact ? 'exactly' : bound
  if (unit !== undefined) return `must have ${words} ${limit} ${unit}${limit === 1 ? '' : 's'}`
  return `must be ${words} ${/seconds$/i.test(path) ? durationOf(limit) : limit}`
}

/** Returns a duration as options have it: `5m`. */
function durationOf(seconds: number): string {
  const [unit, size] = UNITS.find(([, size]) => seconds > 0 && seconds % size === 0) ?? ['s', 1]
  return `${seconds / size}${unit}`
}
