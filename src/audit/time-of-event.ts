/** The times of events, which are RFC 3339 in UTC. Parsing one takes long, and most are in the minute of the one before. */

const MINUTE_CHARACTERS = 'yyyy-mm-ddThh:mm'.length
const SECONDS_AT = 'yyyy-mm-ddThh:mm:'.length
const MILLISECONDS_AT = 'yyyy-mm-ddThh:mm:ss.'.length
const TIME = /^\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/

let latestMinute = ''
let latestMs = Number.NaN

/** Returns milliseconds since the epoch, as `Date.parse` does. */
export function timeMs(time: string): number {
  if (!TIME.test(time)) return Date.parse(time)
  if (latestMinute === '' || !time.startsWith(latestMinute)) {
    const minute = time.slice(0, MINUTE_CHARACTERS)
    const ms = Date.parse(`${minute}:00.000Z`)
    if (Number.isNaN(ms)) return Number.NaN
    latestMinute = minute
    latestMs = ms
  }
  const seconds = Number(time.slice(SECONDS_AT, SECONDS_AT + 2))
  return latestMs + seconds * 1_000 + Number(time.slice(MILLISECONDS_AT, -1))
}
