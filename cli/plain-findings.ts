/** Findings of a gateway for people: the messages of its schemas name types of JSON, and no remedy. */
import type { Finding } from './failure.ts'

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
] as const
/** zod's messages, with what replaces them. `Too small` has `>=` or `>`, `Too big` has `<=` or `<`. */
const SIZE = /^Too (?:small|big): expected (\w+) to (be|have) (exactly |[<>]=?)?(\S+)(?: (\w+))?$/
const OPTIONS = /^Invalid (?:option|input): expected (?:one of )?("[^"]*"(?:\|"[^"]*")*)$/
const TYPE = /^Invalid input: expected (\w+), received (\w+)$/
const FORMAT = /^Invalid (?!input$|string|number|key|value|option)(.+)$/
const LIMITS: Readonly<Record<string, string>> = {
  '>=': 'at least ',
  '>': 'more than ',
  '<=': 'at most ',
  '<': 'less than ',
  'exactly ': 'exactly ',
}
const TYPES: Readonly<Record<string, string>> = {
  string: 'text',
  int: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
}

/**
 * Returns a finding whose message says what the value must be, and where ids are listed. `listing` is the
 * command that lists the records of the request. A message that is not zod's stays the same.
 */
export function plainFinding(finding: Finding, listing: string): Finding {
  return { ...finding, message: plain(finding, listing) }
}

function plain({ in: part, path, message }: Finding, listing: string): string {
  const [size, , verb, limit = '', count = '', unit = ''] = SIZE.exec(message) ?? []
  if (size !== undefined) {
    const isDuration = /seconds$/i.test(path) && verb === 'be'
    const amount = isDuration ? durationOf(Number(count)) : count
    const units = count === '1' ? unit.replace(/s$/, '').replace(/ie$/, 'y') : unit
    return `must ${verb} ${LIMITS[limit] ?? ''}${amount} ${units}`.trim()
  }
  const [, options] = OPTIONS.exec(message) ?? []
  if (options !== undefined) {
    const names = options.slice(1, -1).split('"|"')
    const last = names.pop()
    return `must be ${names.length === 0 ? last : `${names.join(', ')} or ${last}`}`
  }
  const [, type = '', received] = TYPE.exec(message) ?? []
  if (received === 'undefined') return 'is missing'
  if (type !== '') return `must be ${TYPES[type] ?? type}`
  const [, format] = FORMAT.exec(message) ?? []
  if (format === 'UUID' && part === 'params')
    return `must be an id, which is a UUID; \`${listing}\` shows the ids`
  if (format !== undefined) return `must be ${/^(?:a|e|i|o)/i.test(format) ? 'an' : 'a'} ${format}`
  if (message === 'Invalid input') return 'is not valid; see --help'
  return message.replace(/^Invalid (?:string|number): /, '')
}

/** Returns a duration as options have it: `5m`. */
function durationOf(seconds: number): string {
  const [unit, size] = UNITS.find(([, size]) => seconds > 0 && seconds % size === 0) ?? ['s', 1]
  return `${seconds / size}${unit}`
}
