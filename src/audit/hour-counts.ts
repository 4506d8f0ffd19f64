/**
 * Counts of the decisions of an hour. They name no person: reasons and routes are words of the gateway and its policy,
 * which an erasure keeps as well. Pure: no I/O, no clock.
 */
import type { CountedEvent } from './event.ts'
import { DECISIONS } from './event-schema.ts'

/** Decision, reason, route and status of events. */
type Kind = [
  decision: CountedEvent['decision'],
  reason: string,
  route: string | null,
  status: number,
]

/** By the minute of the hour: a place and a count, and so on. */
type Minutes = Record<string, number[]>

export interface HourCounts {
  readonly kinds: Kind[]
  /** Places in `kinds`. */
  readonly minutes: Minutes
  /** Places in {@link DURATION_BOUNDS_MS}. */
  readonly durations: Minutes
}

/**
 * Returns the counts in a JSON text. Returns undefined for every other form, such as that of a later version. A summary
 * reads hundreds of long texts, so this is a loop and no schema.
 */
export function parseCounts(text: string): HourCounts | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isHourCounts(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isHourCounts(value: unknown): value is HourCounts {
  if (!isObject(value) || Object.keys(value).length !== 3) return false
  const { kinds, minutes, durations } = value
  return Array.isArray(kinds) && kinds.every(isKind) && areMinutes(minutes) && areMinutes(durations)
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function isKind(value: unknown): boolean {
  if (!Array.isArray(value) || value.length !== 4) return false
  const [decision, reason, route, status] = value as readonly unknown[]
  return (
    DECISIONS.some((known) => known === decision) &&
    typeof reason === 'string' &&
    (route === null || typeof route === 'string') &&
    isCount(status)
  )
}

const areMinutes = (value: unknown): boolean =>
  isObject(value) &&
  Object.values(value).every((pairs) => Array.isArray(pairs) && pairs.every(isCount))

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0

/** Upper bounds in milliseconds, each half as large again as the one before. The last part has none. */
export const DURATION_BOUNDS_MS: readonly number[] = Array.from(
  { length: 28 },
  (_, at) => Math.round(10 * 1.5 ** at) / 10,
)

/** Beyond them, kinds are counted without a route, and then without a reason. An hour has up to 50 KB, whatever callers send. */
const MAX_KINDS = 70
const MAX_KINDS_WITHOUT_ROUTE = 100

const HOUR_CHARACTERS = 'yyyy-mm-ddThh'.length
const MINUTE_CHARACTERS = 'yyyy-mm-ddThh:mm'.length
const TIME_CHARACTERS = 'yyyy-mm-ddThh:mm:ss.sssZ'.length

/** A minute: its hour, its number in the hour, and what the time of an event in it begins with. */
interface Minute {
  readonly beginning: string
  readonly hour: string
  readonly minute: string
}

/** Parsing takes longer than the other work for a count, and most events are in the minute of the one before. */
let latest: Minute | undefined

function minuteOf(time: string): Minute {
  const isUtc = time.length === TIME_CHARACTERS && time.endsWith('Z')
  if (isUtc && latest !== undefined && time.startsWith(latest.beginning)) return latest
  const date = new Date(time)
  const minute = {
    beginning: time.slice(0, MINUTE_CHARACTERS),
    hour: date.toISOString().slice(0, HOUR_CHARACTERS),
    minute: String(date.getUTCMinutes()),
  }
  if (isUtc) latest = minute
  return minute
}

/** Returns the hour of a time: `2026-11-20T12`. */
export const hourOf = (time: string): string => minuteOf(time).hour

/** Returns the begin of an hour, in milliseconds since the epoch. */
export const hourMs = (hour: string): number => Date.parse(`${hour}:00:00.000Z`)

const newHour = (): HourCounts => ({ kinds: [], minutes: {}, durations: {} })

/** Adds events to the counts of their hours. Returns the changed hours. */
export function countHours(
  stored: ReadonlyMap<string, HourCounts>,
  events: readonly CountedEvent[],
): ReadonlyMap<string, HourCounts> {
  const hours = new Map<string, { counts: HourCounts; places: Map<string, number> }>()
  for (const event of events) {
    const { hour: name, minute } = minuteOf(event.time)
    let hour = hours.get(name)
    if (hour === undefined) {
      const counts = structuredClone(stored.get(name) ?? newHour())
      const places = new Map(counts.kinds.map((kind, place) => [nameOf(kind), place]))
      hour = { counts, places }
      hours.set(name, hour)
    }
    const { counts, places } = hour
    add(counts.minutes, minute, placeOf(event, counts, places))
    const stages = Object.values(event.durationsMs)
    if (stages.length === 0) continue
    const ms = stages.reduce((sum, one) => sum + one, 0)
    const at = DURATION_BOUNDS_MS.findIndex((bound) => ms <= bound)
    add(counts.durations, minute, at === -1 ? DURATION_BOUNDS_MS.length : at)
  }
  return new Map([...hours].map(([name, { counts }]) => [name, counts]))
}

/** Returns the place of the kind of an event, which it adds to the kinds. */
function placeOf(
  { decision, reason, route, status }: CountedEvent,
  { kinds }: HourCounts,
  places: Map<string, number>,
): number {
  const whole: Kind = [decision, reason, route, status]
  const known = places.get(nameOf(whole))
  if (known !== undefined) return known
  const kind = shortened(whole, kinds.length)
  const name = nameOf(kind)
  const found = places.get(name)
  if (found !== undefined) return found
  kinds.push(kind)
  places.set(name, kinds.length - 1)
  return kinds.length - 1
}

/** Returns the unique name of a kind. The reason and the route are last, because callers can choose them. */
const nameOf = ([decision, reason, route, status]: Kind): string =>
  `${decision} ${status} ${reason.length} ${reason}${route === null ? '' : `:${route}`}`

function shortened(kind: Kind, kinds: number): Kind {
  const [decision, reason, , status] = kind
  if (kinds < MAX_KINDS) return kind
  if (kinds < MAX_KINDS_WITHOUT_ROUTE) return [decision, reason.split(':')[0] ?? '', null, status]
  return [decision, 'other', null, 0]
}

function add(minutes: Record<string, number[]>, minute: string, place: number): void {
  const pairs = minutes[minute] ?? []
  minutes[minute] = pairs
  for (let at = 0; at < pairs.length; at += 2)
    if (pairs[at] === place) {
      pairs[at + 1] = (pairs[at + 1] ?? 0) + 1
      return
    }
  pairs.push(place, 1)
}

/** Calls `each` with the places and counts of a minute. */
export function eachPair(
  pairs: readonly number[],
  each: (place: number, count: number) => void,
): void {
  for (let at = 0; at + 1 < pairs.length; at += 2) each(pairs[at] ?? 0, pairs[at + 1] ?? 0)
}
