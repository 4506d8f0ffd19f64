/** Formats of JSON Schema for text, as their RFCs define them. zod's own are narrower. */
import * as z from 'zod/mini'

const TIME =
  /^([01]\d|2[0-3]):([0-5]\d):(?:[0-5]\d|(60))(?:\.\d+)?(?:[Zz]|([+-](?:[01]\d|2[0-3])):([0-5]\d))$/
const MINUTES_PER_DAY = 1_440
const TIME_OF_DAY = /^[Tt ](.+)$/
const DATE_CHARS = 10
/** Text, `@`, a domain or an address. A quoted local part may contain anything (RFC 5321). */
const EMAIL =
  /^(?:[^\s@"(),:;<>[\\\]]+|"(?:[^"\\]|\\.)*")@(?:[a-z\d](?:[a-z\d.-]*[a-z\d])?|\[[^\]\s]+\])$/i
/** A scheme, and only characters of RFC 3986. */
const URI = /^[a-z][a-z\d+.-]*:(?:[\w.~:/?#[\]@!$&'()*+,;=-]|%[\da-f]{2})*$/i
const URI_REFERENCE = /^(?:[\w.~:/?#[\]@!$&'()*+,;=-]|%[\da-f]{2})*$/i
const MAX_HOST_CHARS = 253
const HOSTNAME = /^[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?(?:\.[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?)*\.?$/i
const UUID = /^(?:urn:uuid:)?[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}$/i

const text = (matches: (value: string) => boolean, message: string): z.core.$ZodCheck<string> =>
  z.refine(matches, message)

const isDate = (value: string): boolean => z.safeParse(z.iso.date(), value).success

/** A leap second is the last one of a day in UTC (RFC 3339 section 5.7). */
function isTime(value: string): boolean {
  const [matched, hour, minute, leap, offset = '+00', offsetMinute = '00'] = TIME.exec(value) ?? []
  if (matched === undefined || leap === undefined) return matched !== undefined
  const hours = Number(hour) - Number(offset)
  const minutes = Number(minute) - Number(`${offset[0]}${offsetMinute}`)
  return (hours * 60 + minutes + 1) % MINUTES_PER_DAY === 0
}

/** RFC 3339 `full-date`. */
export const date = (): z.core.$ZodCheck<string> => text(isDate, 'Must be a date (RFC 3339)')

/** RFC 3339 `date-time`, with lower-case letters and leap seconds. */
export const dateTime = (): z.core.$ZodCheck<string> =>
  text((value) => {
    const [, time = ''] = TIME_OF_DAY.exec(value.slice(DATE_CHARS)) ?? []
    return isDate(value.slice(0, DATE_CHARS)) && isTime(time)
  }, 'Must be a date with time and offset (RFC 3339)')

/** RFC 3339 `full-time`. */
export const time = (): z.core.$ZodCheck<string> =>
  text(isTime, 'Must be a time with offset (RFC 3339)')

/** RFC 5321 `Mailbox`. */
export const email = (): z.core.$ZodCheck<string> =>
  text((value) => EMAIL.test(value), 'Must be an email address')

/** RFC 9562, of any version. */
export const uuid = (): z.core.$ZodCheck<string> =>
  text((value) => UUID.test(value), 'Must be a UUID')

/** RFC 3986 with a scheme. */
export const uri = (): z.core.$ZodCheck<string> =>
  text((value) => URI.test(value), 'Must be a URI with a scheme')

/** RFC 3986, with or without a scheme. */
export const uriReference = (): z.core.$ZodCheck<string> =>
  text((value) => URI_REFERENCE.test(value), 'Must be a URI reference')

/** RFC 1123. */
export const hostname = (): z.core.$ZodCheck<string> =>
  text((value) => value.length <= MAX_HOST_CHARS + 1 && HOSTNAME.test(value), 'Must be a host name')

const IPV4 = z.ipv4()
const IPV6 = z.ipv6()

/** RFC 2673 section 3.2. */
export const ipv4 = (): z.core.$ZodCheck<string> =>
  text((value) => z.safeParse(IPV4, value).success, 'Must be an IPv4 address')

/** RFC 4291 section 2.2. */
export const ipv6 = (): z.core.$ZodCheck<string> =>
  text((value) => z.safeParse(IPV6, value).success, 'Must be an IPv6 address')

/** RFC 4648 section 4, with padding. */
export const base64 = (): z.core.$ZodCheck<string> =>
  text((value) => value.length % 4 === 0 && /^[A-Za-z\d+/]*={0,2}$/.test(value), 'Must be base64')
