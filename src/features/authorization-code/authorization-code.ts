/**
 * Authorization codes (RFC 6749 section 4.1.2): 256 unpredictable bits in base64url. The store has
 * the record of a code under its SHA-256.
 */
import { base64url } from 'jose'
import * as z from 'zod/mini'
import { credentialHash } from '../../access/tokens/reference.ts'
import { type FamilyEnd, sessionSchema } from '../../access/tokens/refresh-family.ts'
import { FAMILY_BYTES } from '../../access/tokens/refresh-token.ts'
import { drawnSecret } from '../../crypto/drawn.ts'
import type { RandomBytes } from '../../crypto/random.ts'
import { hmacSha256 } from '../../crypto/sha256.ts'
import type { RedisKeys } from '../../redis/keys.ts'
import { integer } from '../../validators/schema-parts.ts'

/** How long a client may wait before it redeems a code. RFC 6749 recommends at most 600. */
export const CODE_SECONDS = 60

const CODE_BYTES = 32
/** Canonical: the unused bits of the last character must be zero. */
const CODE = /^[\w-]{42}[AEIMQUYcgkosw048]$/

export const codeSchema = z.strictObject({
  /** The session that the code starts. Its client alone may redeem the code. */
  session: sessionSchema,
  redirectUri: z.string(),
  /** `code_challenge` for `S256` (RFC 7636 section 4.2). */
  challenge: z.string(),
  /** Whether the session has refresh tokens. */
  refresh: z.boolean(),
  /** From the metadata of the client, which the token endpoint does not read. */
  dpopBound: z.optional(z.boolean()),
  /** SHA-256 that identifies the browser session in which the user allowed it. */
  browserSession: z.string(),
  /** The attempt that drew the name of the refresh family. Absent: the first. */
  familyAttempt: z.optional(integer()),
})

/** The cutoffs of a browser session, which may end when nothing ends the sessions of its codes. */
export const browserCutoffsSchema = z.strictObject({
  /** The keys without the prefix. */
  names: z.readonly(z.array(z.string())),
  /** Whole seconds since the epoch. A cutoff at or after the login ends the browser session. */
  issuedAtSeconds: integer(),
})

export interface AuthorizationCode extends Readonly<z.output<typeof codeSchema>> {
  /** Stored beside the record, which an earlier version must be able to read. Absent: that version stored it. */
  readonly browserCutoffs?: Readonly<z.output<typeof browserCutoffsSchema>> | undefined
  /** Whether the authorization request does not name `redirectUri`. Stored beside the record, too. */
  readonly isImplied?: boolean | undefined
}

export interface CodeText {
  readonly text: string
  /** base64url SHA-256 of the text. */
  readonly hash: string
}

/** Creates the text of a new code for a subject, and draws the name of its refresh family. */
export async function newCode(
  random: RandomBytes,
  subject: string,
  { draw }: Pick<AuthorizationCodes, 'draw'>,
): Promise<CodeText & Pick<AuthorizationCode, 'familyAttempt'>> {
  const create = () => base64url.encode(random(CODE_BYTES))
  const text = draw?.(subject, create) ?? create()
  const code = { text, hash: await credentialHash(text) }
  if (draw === undefined) return code
  const family = await familyOfCode(code)
  let familyAttempt: number | undefined
  draw(subject, (attempt) => {
    familyAttempt = attempt || undefined
    return base64url.encode(drawnSecret(family, attempt))
  })
  return { ...code, familyAttempt }
}

/** Parses the text of a code. Returns undefined for another form. Does NOT look it up. */
export async function parseCode(text: string): Promise<CodeText | undefined> {
  return CODE.test(text) ? { text, hash: await credentialHash(text) } : undefined
}

/**
 * Derives the refresh family of the session that a code starts. Each request with the code computes
 * the same family, so that a replay can end it. Only the holder of the code can compute it.
 */
export async function familyOfCode({ text }: CodeText, attempt = 0): Promise<Uint8Array> {
  const derive = await hmacSha256(base64url.decode(text))
  return drawnSecret((await derive('refresh_family')).slice(0, FAMILY_BYTES), attempt)
}

export interface FoundCode {
  readonly code: AuthorizationCode
  readonly isUsed: boolean
}

/** One use of a code. */
export interface Redemption {
  readonly codeHash: string
  readonly familyHash: string
  readonly code: AuthorizationCode
  /** base64url SHA-256 of the first refresh token. Undefined: the session gets none. */
  readonly refreshTokenHash: string | undefined
  readonly familySeconds: number
  /** Revocation cutoffs that end the session if they are at or after its start. */
  readonly revokedBeforeKeys: readonly string[]
  readonly end: FamilyEnd
}

/**
 * `replayed`: the code was used before, and the session that it started has ended now. `cut_off`: a
 * revocation covers the session, or the browser session has ended.
 */
export type RedemptionOutcome = 'redeemed' | 'unknown' | 'replayed' | 'cut_off'

/** Port: the codes. Each step is atomic. Throws `Unavailable` if the store fails. */
export interface AuthorizationCodes {
  /** The names under which this store keeps what requests name. */
  readonly keys: RedisKeys
  /** As of `ReferenceStore`, for codes and for the names of their families. */
  draw?(subject: string, create: (attempt: number) => string): string
  put(codeHash: string, code: AuthorizationCode): Promise<void>
  find(codeHash: string): Promise<FoundCode | undefined>
  redeem(redemption: Redemption): Promise<RedemptionOutcome>
}
