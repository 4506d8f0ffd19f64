/** The variables of the server on Node. */
import * as z from 'zod/mini'
import { didYouMean } from '../../../suggestions/did-you-mean.ts'
import { isReserved, unwrapped } from '../../../validators/request-header.ts'
import { OTHER_MEANING } from '../../../validators/token-source.ts'
import { listeningPort } from '../../../validators/variables.ts'
import { networks } from './trusted-proxies.ts'

const TARGET_HEADERS = [
  'x-forwarded-proto',
  'x-forwarded-host',
  'x-forwarded-port',
  'forwarded',
] as const

/** A header in which a proxy reports the scheme, the host or the port of the request that it received. */
export type TargetHeader = (typeof TARGET_HEADERS)[number]

const isTargetHeader = (name: string): name is TargetHeader =>
  (TARGET_HEADERS as readonly string[]).includes(name)

/** A list such as `x-forwarded-proto, x-forwarded-port`. */
const targetHeaders = z.pipe(
  z.string(),
  z.transform((list, context) => {
    const names = list.split(',').map((part) => part.trim().toLowerCase())
    for (const name of names)
      if (!isTargetHeader(name))
        context.issues.push({ code: 'custom', message: mistakeIn(name), input: list })
    return names.filter(isTargetHeader)
  }),
)

function mistakeIn(name: string): string {
  const remedy = didYouMean(name, TARGET_HEADERS) ?? `use ${TARGET_HEADERS.join(', ')}`
  return `${JSON.stringify(name)} is not read; ${remedy}`
}

/** Those of Cloudflare about the place of a client. The gateway reserves the others of `CF-*`. */
const OF_CLOUDFLARE = /^cf-(?:ip(?:country|city)|region|timezone)$/
/** Headers that clients send, and that origins read for another purpose. */
const OF_CLIENTS =
  /^(?:accept.*|access-control-.+|authorization|cache-control|if-.+|range|prefer|priority|pragma|last-event-id|idempotency-key|via|forwarded)$/

/** The name of a header in which a proxy reports a country or a city. */
const placeHeader = z.pipe(
  z.string().check(
    z.maxLength(100),
    z.regex(/^[a-z0-9-]+$/i, 'must be one name of letters, digits and hyphens'),
    z.refine(
      (name) => OF_CLOUDFLARE.test(name.toLowerCase()) || !hasOtherMeaning(name.toLowerCase()),
      'is a header with another meaning; name the one that your proxy sets, such as x-geo-country',
    ),
  ),
  z.transform((name) => name.toLowerCase()),
)

const hasOtherMeaning = (name: string): boolean =>
  isReserved(unwrapped(name)) ||
  unwrapped(name) !== name ||
  OTHER_MEANING.test(name) ||
  OF_CLIENTS.test(name)

export const serverVariables = {
  PORT: z.optional(listeningPort()),
  HOST: z.optional(
    z
      .string()
      .check(z.regex(/^[\w.:%-]+$/, 'must be an address such as 127.0.0.1, or the name of a host')),
  ),
  TRUSTED_PROXIES: z.optional(networks),
  PROXY_HEADER: z.optional(
    z.enum(['x-forwarded-for', 'forwarded'], 'must be x-forwarded-for or forwarded'),
  ),
  PROXY_TARGET_HEADERS: z.optional(targetHeaders),
  PROXY_COUNTRY_HEADER: z.optional(placeHeader),
  PROXY_CITY_HEADER: z.optional(placeHeader),
  TLS_CERT_FILE: z.optional(z.string()),
  TLS_KEY_FILE: z.optional(z.string()),
}

const schema = z.object(serverVariables)

/** Reads the settings of valid variables. Returns none for variables with mistakes. */
export const serverSettings = (variables: unknown): z.output<typeof schema> =>
  schema.safeParse(variables).data ?? {}
