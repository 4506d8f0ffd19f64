/** Schemas of the options of `secret()` and `clientCredentials()`, and of their variables. */
import * as z from 'zod/mini'
import { IDENTITY_HEADERS } from '../../validators/identity-headers.ts'
import { isReserved } from '../../validators/request-header.ts'
import { nonEmpty, requestedScope, text } from '../../validators/schema-parts.ts'
import { privateUrl } from '../../validators/variables.ts'

const variable = z
  .string()
  .check(z.regex(/^ORIGIN_SECRET_[A-Z0-9_]+$/, 'must be a name such as ORIGIN_SECRET_ORDERS'))

/** Only the gateway writes the others, or they belong to the message. */
function mayCarry(header: string): boolean {
  const name = header.toLowerCase()
  if (name === 'authorization') return true
  return name.startsWith('x-auth-') ? !IDENTITY_HEADERS.includes(name) : !isReserved(name)
}

export const secretSchema = z
  .strictObject({
    variable,
    header: z.optional(
      z
        .string()
        .check(
          z.regex(/^[a-z][a-z0-9-]{0,63}$/i, 'must be letters, digits and hyphens: X-Api-Key'),
          z.refine(mayCarry, 'is a header that cannot carry a secret; use one such as X-Api-Key'),
        ),
    ),
    scheme: z.optional(z.string().check(z.regex(/^[\w-]{1,32}$/, 'must be a word such as Bearer'))),
    // A colon would end the user name.
    basic: z.optional(z.string().check(z.regex(/^[\x21-\x39\x3b-\x7e]{1,256}$/))),
    query: z.optional(
      z.string().check(z.regex(/^[\w.-]{1,64}$/, 'must be a name of a parameter, such as api_key')),
    ),
  })
  .check(
    z.refine(
      ({ header, basic, query }) =>
        [header, basic, query].filter((place) => place !== undefined).length === 1,
      'requires exactly one of header, basic and query',
    ),
    z.refine(
      ({ header, scheme }) => scheme === undefined || header !== undefined,
      'scheme requires header',
    ),
  )

export const clientCredentialsSchema = z
  .strictObject({
    tokenEndpoint: z.optional(privateUrl),
    tokenEndpointVariable: z.optional(
      z
        .string()
        .check(
          z.regex(
            /^ORIGIN_TOKEN_URL_[A-Z0-9_]+$/,
            'must be a name such as ORIGIN_TOKEN_URL_ORDERS',
          ),
        ),
    ),
    client: text(512),
    variable,
    method: z._default(
      z.enum(['client_secret_basic', 'client_secret_post']),
      'client_secret_basic',
    ),
    scope: z.optional(requestedScope()),
    resource: z.optional(nonEmpty),
    audience: z.optional(nonEmpty),
  })
  .check(
    z.refine(
      ({ tokenEndpoint, tokenEndpointVariable }) =>
        (tokenEndpoint ?? tokenEndpointVariable) !== undefined,
      'requires tokenEndpoint or tokenEndpointVariable',
    ),
  )

/** The value of a secret. A file with a line break at its end would give one to the header. */
export const secretVariable = z
  .string()
  .check(
    z.regex(
      /^[\x21-\x7e](?:[\x20-\x7e]{0,4094}[\x21-\x7e])?$/,
      'must be visible ASCII in one line, without spaces around it, of at most 4,096 characters',
    ),
  )
