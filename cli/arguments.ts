/** Parsers of command-line arguments: numbers, times, ids, and text from standard input. */
import { InvalidArgumentError } from '@commander-js/extra-typings'
import { usage } from './failure.ts'

const UNIT_SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const
const MAX_PORT = 65_535
const MAX_INPUT_CHARACTERS = 65_536

/** Collects the values of an option that can be repeated. */
export function repeated(value: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, value]
}

/** Parses a whole number without a sign. Does NOT check the range: the gateway does. */
export function whole(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.')
  return Number(text)
}

/** Parses the number of a port. 0 selects a free one. */
export function portNumber(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > MAX_PORT) {
    throw new InvalidArgumentError(`It must be a number from 0 to ${MAX_PORT}.`)
  }
  return Number(text)
}

/** Parses a duration (`90s`, `15m`, `1h`, `2d`) and returns seconds. Only `0` needs no unit. */
export function seconds(text: string): number {
  if (text === '0') return 0
  const [, count, unit] = /^(\d{1,10})([smhd])$/.exec(text) ?? []
  if (count === undefined) {
    throw new InvalidArgumentError('It must look like 90s, 15m, 1h or 2d.')
  }
  return Number(count) * UNIT_SECONDS[unit as keyof typeof UNIT_SECONDS]
}

/** As {@link seconds}, or `never`. */
export const secondsOrNever = (text: string): number | 'never' =>
  text === 'never' ? text : seconds(text)

/** Collects the entries of an option that can be repeated: `team=billing`. */
export function entry(
  text: string,
  earlier: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const at = text.indexOf('=')
  const name = text.slice(0, Math.max(0, at))
  if (name === '') throw new InvalidArgumentError('It must look like team=billing.')
  if (Object.hasOwn(earlier, name)) throw new InvalidArgumentError(`"${name}" occurs twice.`)
  return { ...earlier, [name]: text.slice(at + 1) }
}

const DAY = /^(\d{4})-(\d\d)-(\d\d)$/
const TIME = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?$/i
const AGE = /^(\d{1,9}) ?(s|m|h|d|w)(?: ago)?$/
const AGE_SECONDS = { ...UNIT_SECONDS, w: 604_800 } as const

/**
 * Parses an ISO 8601 time or day, `now`, `today`, `yesterday`, or an age (`15m`, `2h ago`) that is
 * subtracted from now. A time without a zone, and the beginning of a day, are in the time zone of the
 * machine. Returns RFC 3339 in UTC.
 */
export const instant = (text: string): string => instantAt(text, Date.now())

/** As {@link instant}, with the current time in milliseconds since the epoch. */
export function instantAt(text: string, nowMs: number): string {
  const at = dateIn(text.trim().toLowerCase(), nowMs)
  if (at !== undefined && !Number.isNaN(at.getTime())) return at.toISOString()
  throw new InvalidArgumentError(
    'It must be a time (2026-11-20T16:00:00Z), a day (2026-11-20, today, yesterday) or an age (15m).',
  )
}

function dateIn(text: string, nowMs: number): Date | undefined {
  if (text === 'now') return new Date(nowMs)
  if (text === 'today' || text === 'yesterday') {
    const day = new Date(nowMs)
    return new Date(day.getFullYear(), day.getMonth(), day.getDate() - (text === 'today' ? 0 : 1))
  }
  const [, year, month, date] = DAY.exec(text) ?? []
  if (year !== undefined) {
    const day = new Date(Number(year), Number(month) - 1, Number(date))
    // Another month: there is no such day.
    return day.getMonth() === Number(month) - 1 ? day : undefined
  }
  if (TIME.test(text)) return new Date(text.toUpperCase().replace(' ', 'T'))
  const [, count, unit] = AGE.exec(text) ?? []
  if (count === undefined) return undefined
  return new Date(nowMs - Number(count) * AGE_SECONDS[unit as keyof typeof AGE_SECONDS] * 1_000)
}

/** Parses an id of the gateway. Rejects characters that would change the path it is put into. */
export function id(text: string): string {
  if (!/^[\w-]{1,128}$/.test(text)) throw new InvalidArgumentError('It is not an id.')
  return text
}

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i

/** Parses the id of an API key. Rejects the key itself, which must not be in a path or a log. */
export function keyId(text: string): string {
  if (text.startsWith('pk_'))
    throw new InvalidArgumentError(
      'It must be the id of the key: `portcullis api-keys lookup` finds it.',
    )
  if (!UUID.test(text))
    throw new InvalidArgumentError(
      'It must be the id of a key, which is a UUID: `portcullis api-keys list` shows the ids.',
    )
  return text
}

/**
 * Returns the argument, or the text of standard input for `-`, trimmed of white space. Throws a
 * usage failure if the input is empty or too long.
 */
export async function textOf(argument: string): Promise<string> {
  if (argument !== '-') return argument
  let text = ''
  process.stdin.setEncoding('utf8')
  for await (const chunk of process.stdin) {
    text += chunk as string
    if (text.length > MAX_INPUT_CHARACTERS) throw usage('standard input is too long')
  }
  if (text.trim() === '') throw usage('standard input is empty')
  return text.trim()
}
