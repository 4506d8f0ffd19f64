/** Header and claims of DPoP proofs (RFC 9449 section 4.2). */

import * as z from 'zod/mini'
import { DPOP_ALGORITHMS } from '../crypto/dpop-algorithms.ts'
import { tokenId } from './claims.ts'

/** 4096 bits as base64url. Any caller can send a key, and larger keys take longer to verify. */
const MAX_MODULUS_CHARS = 683
/** Members of private and symmetric keys (RFC 7518 section 6), refused for every `kty`. */
const SECRET_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']

const publicJwk = z
  .looseObject({ kty: z.string(), n: z.optional(z.string().check(z.maxLength(MAX_MODULUS_CHARS))) })
  .check(z.refine((jwk) => !SECRET_MEMBERS.some((member) => Object.hasOwn(jwk, member))))

/** The protected header of a proof. Does NOT check `typ`, nor that the key is sound: `sortKeys` does. */
export const dpopHeader = z.object({
  alg: z.enum(DPOP_ALGORITHMS),
  jwk: publicJwk,
})

/** The claims of a proof. Does NOT check that they match the request. */
export const dpopClaims = z.object({
  jti: tokenId,
  htm: z.string(),
  htu: z.string(),
  iat: z.number(),
  exp: z.optional(z.number()),
  nbf: z.optional(z.number()),
  ath: z.optional(z.string()),
  nonce: z.optional(z.string()),
})

export type DpopClaims = z.output<typeof dpopClaims>
