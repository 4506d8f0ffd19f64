/** Verification of tokens by a call to their issuer: fields of `ISSUERS`, and `ISSUER_CLIENTS`. */
import * as z from 'zod/mini'
import { nonEmpty, text, unique, wholeNumber } from './schema-parts.ts'
import { soundJwk } from './signing-jwk.ts'
import { privateUrl } from './variables.ts'

/** How long a positive response is used by default. */
export const DEFAULT_MAX_AGE_SECONDS = 60
const LONGEST_MAX_AGE_SECONDS = 300

const call = {
  /** Default: from the issuer's metadata. */
  endpoint: z.optional(privateUrl),
  maxAgeSeconds: z._default(wholeNumber(1, LONGEST_MAX_AGE_SECONDS), DEFAULT_MAX_AGE_SECONDS),
  /** `opaque`: tokens that are not JWTs. `jwt`: the JWTs of the issuer. */
  form: z._default(z.enum(['opaque', 'jwt']), 'opaque'),
  /** The beginning of every opaque token of the issuer. */
  tokenPrefix: z.optional(text(64)),
}

/** RFC 7662. */
export const introspection = z.strictObject(call)

/** OpenID Connect Core section 5.3. Its response does not say for which API a token is. */
export const userinfo = z.strictObject({
  ...call,
  audience: z.literal('any', {
    error:
      'must be "any": a userinfo endpoint accepts tokens of every client, also of other applications',
  }),
})

interface CalledIssuer {
  readonly introspection?: z.output<typeof introspection> | undefined
  readonly userinfo?: z.output<typeof userinfo> | undefined
}

/** Returns how tokens of an issuer are verified by a call. Undefined: only with its keys. */
export const callOf = (issuer: CalledIssuer) => issuer.introspection ?? issuer.userinfo

/** An opaque token does not name its issuer, so at most one issuer may accept it. */
export function* mistakesInPrefixes(issuers: readonly CalledIssuer[]) {
  const calls = issuers.flatMap((issuer, index) => {
    const { form, tokenPrefix = '' } = callOf(issuer) ?? {}
    const field = issuer.introspection === undefined ? 'userinfo' : 'introspection'
    return form === 'opaque' ? [{ tokenPrefix, path: [index, field, 'tokenPrefix'] }] : []
  })
  for (const { tokenPrefix, path } of calls) {
    const others = calls.filter((other) => other.path !== path)
    if (others.some((other) => other.tokenPrefix.startsWith(tokenPrefix)))
      yield {
        path,
        message: 'must distinguish the opaque tokens of this issuer from those of others',
      }
  }
}

const client = {
  /** An issuer in `ISSUERS`. */
  issuer: nonEmpty,
  id: text(512),
  /** Users sign in with it. `signIn()` checks it. */
  signIn: z.optional(z.unknown()),
}
const SECRET_METHODS = ['client_secret_basic', 'client_secret_post'] as const

/** A client with a secret (RFC 6749 section 2.3.1), or with a key (RFC 7523). */
const issuerClient = z.union(
  [
    z.strictObject({
      ...client,
      secret: text(1_024),
      method: z._default(z.enum(SECRET_METHODS), 'client_secret_basic'),
    }),
    z.strictObject({
      ...client,
      key: soundJwk,
      /** `aud` of its assertions. Default: the issuer. */
      audience: z.optional(nonEmpty),
    }),
  ],
  'must be { "issuer", "id", "secret" } or { "issuer", "id", "key" }, with valid values',
)

export type IssuerClient = z.output<typeof issuerClient>

export const issuerClients = z.array(issuerClient).check(unique('issuer', 'duplicate issuer'))

/** Yields the mistakes of issuers without a client, and of clients without an issuer. */
export function* mistakesInClients(
  issuers: readonly (CalledIssuer & { readonly issuer: string })[],
  clients: readonly IssuerClient[],
) {
  for (const [index, { issuer, introspection }] of issuers.entries()) {
    if (introspection === undefined || clients.some((client) => client.issuer === issuer)) continue
    const path = ['ISSUERS', index, 'introspection']
    yield { path, message: 'requires a client of the gateway for this issuer in ISSUER_CLIENTS' }
  }
  for (const [index, { issuer, signIn }] of clients.entries()) {
    const of = issuers.find((one) => one.issuer === issuer)
    if (of !== undefined && (of.introspection ?? signIn) !== undefined) continue
    const path = ['ISSUER_CLIENTS', index, 'issuer']
    yield { path, message: 'must be an issuer with introspection or signIn in ISSUERS' }
  }
}
