/** Verification of tokens by a call to their issuer: fields of `ISSUERS`. */
import * as z from 'zod/mini'
import { text, wholeNumber } from './schema-parts.ts'
import { privateUrl } from './variables.ts'

/** How long a positive response is used by default. */
const DEFAULT_MAX_AGE_SECONDS = 60
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

export interface CalledIssuer {
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
