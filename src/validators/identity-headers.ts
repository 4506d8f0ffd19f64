/** Claims that the origin gets in headers of its own choice. */
import * as z from 'zod/mini'
import { superRefine } from './checks.ts'
import { type ClaimPath, claimPath } from './claim-path.ts'
import { isReserved } from './request-header.ts'

/** The names of all headers about the caller, with that of the signed assertion. */
export const IDENTITY_HEADERS = [
  'subject',
  'issuer',
  'client',
  'tenant',
  'roles',
  'scope',
  'acr',
  'amr',
  'time',
  'assertion',
].map((name) => `x-auth-${name}`)

/** The headers of proxies that people replace: oauth2-proxy, and Pomerium. */
const SETS = {
  'oauth2-proxy': {
    'X-Forwarded-User': 'sub',
    'X-Forwarded-Email': 'email',
    'X-Forwarded-Preferred-Username': 'preferred_username',
    'X-Forwarded-Groups': 'groups',
  },
  pomerium: {
    'X-Pomerium-Claim-Sub': 'sub',
    'X-Pomerium-Claim-Email': 'email',
    'X-Pomerium-Claim-Name': 'name',
    'X-Pomerium-Claim-Groups': 'groups',
  },
} as const

export type IdentityHeaderSet = keyof typeof SETS

/** Claim paths by the name of the header, or the name of a set. */
export type IdentityHeaders =
  | IdentityHeaderSet
  | Readonly<Record<string, string | readonly string[]>>

const MAX_HEADERS = 20
const MAX_NAME_CHARS = 64
const NAME = /^[a-z][a-z0-9-]*[a-z0-9]$/i

/** Beginnings of names that decide about the message, its way or its sender, and not about who the caller is. */
const OTHER_FAMILIES = [
  'accept-',
  'access-',
  'content-',
  'if-',
  'sec-',
  'x-original-',
  'x-portcullis-',
]

/** Names of the same kind. */
// biome-ignore format: a table
const OTHERS: ReadonlySet<string> = new Set([
  'accept', 'cache-control', 'date', 'forwarded', 'from', 'origin', 'pragma', 'prefer', 'range', 'referer', 'user-agent', 'via',
  'x-real-ip', 'x-forwarded-method', 'x-forwarded-uri', 'x-forwarded-server', 'x-forwarded-prefix', 'x-forwarded-scheme', 'x-forwarded-ssl',
])

const hasOtherMeaning = (name: string): boolean =>
  OTHERS.has(name) || OTHER_FAMILIES.some((beginning) => name.startsWith(beginning))

const isOfGateway = (name: string): boolean =>
  name.startsWith('x-auth-') ? IDENTITY_HEADERS.includes(name) : isReserved(name)

function mistakeIn(name: string): string | undefined {
  const lowerCase = name.toLowerCase()
  if (!NAME.test(name) || name.length > MAX_NAME_CHARS)
    return `${JSON.stringify(name)} must be letters, digits and hyphens, such as X-Auth-Email`
  if (isOfGateway(lowerCase)) return `${name} is written by the gateway itself`
  if (hasOtherMeaning(lowerCase))
    return `${name} has another meaning; use a name such as X-Auth-Email`
  return undefined
}

const record = z.record(z.string(), claimPath).check(
  superRefine((headers, context) => {
    const names = Object.keys(headers)
    if (names.length > MAX_HEADERS)
      context.addIssue({ code: 'custom', message: `must have at most ${MAX_HEADERS} headers` })
    for (const [index, name] of names.entries()) {
      const isTwice = names
        .slice(0, index)
        .some((other) => other.toLowerCase() === name.toLowerCase())
      const message = isTwice
        ? `duplicate header ${name}; the case of names does not matter`
        : mistakeIn(name)
      if (message !== undefined) context.addIssue({ code: 'custom', message, path: [name] })
    }
  }),
)

/** Does NOT check that a token has the claims. */
export const identityHeadersSchema = z.pipe(
  z.transform((value) =>
    Object.hasOwn(SETS, String(value)) ? SETS[value as IdentityHeaderSet] : value,
  ),
  record,
)

/** Returns the claim paths by the lower-case name of the header. */
export function readIdentityHeaders(
  headers: IdentityHeaders | undefined,
): ReadonlyMap<string, ClaimPath> {
  if (headers === undefined) return new Map()
  const paths = typeof headers === 'string' ? SETS[headers] : headers
  return new Map(
    Object.entries<string | readonly string[]>(paths).map(([name, path]) => [
      name.toLowerCase(),
      typeof path === 'string' ? path : [...path],
    ]),
  )
}
