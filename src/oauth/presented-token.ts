/** A token that somebody holds out to the authorization server, whatever kind it is of. */
import { Denied } from '../errors.ts'
import type { FoundSession, RefreshTokens } from '../tokens/access-grant.ts'
import { kindOf } from '../tokens/credential.ts'
import { readPayload } from '../tokens/jws.ts'
import type { Principal, TokenVerifier, WaitUntil } from '../tokens/principal.ts'
import { credentialHash, type ReferenceStore } from '../tokens/reference.ts'
import { failedCheckOf, principalOfRecord } from '../tokens/reference-principal.ts'
import { parseRefreshToken } from '../tokens/refresh-token.ts'
import type { OwnTokenReader } from './own-token.ts'

/** A good access token. */
export interface PresentedAccess {
  readonly kind: 'jwt' | 'opaque' | 'api_key'
  readonly principal: Principal
  /** `aud`; undefined for a token of another issuer, which is for the gateway. */
  readonly audiences: readonly string[] | undefined
  /** What the record of a reference is stored under. */
  readonly referenceHash: string | undefined
}

/** A refresh token of a session that goes on; the token itself may be one that was used before. */
export interface PresentedRefresh extends FoundSession {
  readonly kind: 'refresh'
}

export type Presented = PresentedAccess | PresentedRefresh

/** Undefined for what is not good: unknown, malformed, expired, ended. */
export type PresentedTokenReader = (
  token: string,
  waitUntil?: WaitUntil,
) => Promise<Presented | undefined>

export interface PresentedTokenOptions {
  /** The gateway's public URL. */
  readonly issuer: string
  readonly ownTokens: OwnTokenReader
  /** For tokens of other issuers. */
  readonly verifier: TokenVerifier
  readonly references: ReferenceStore
  readonly refreshTokens: RefreshTokens
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/**
 * Makes the reader, which changes nothing. A token says by its form what it is, so a hint is not
 * needed. Does NOT check revocation or cut-offs of access tokens, nor who may know of them. Throws
 * `Unavailable` where nobody can tell.
 */
export function createPresentedTokenReader(options: PresentedTokenOptions): PresentedTokenReader {
  const { issuer, ownTokens, verifier, references, refreshTokens, now } = options

  async function read(token: string, waitUntil?: WaitUntil): Promise<Presented | undefined> {
    if ((await parseRefreshToken(token)) !== undefined) {
      const found = await refreshTokens.find(token)
      return found && { kind: 'refresh', ...found }
    }
    const kind = kindOf(token, { references: true })
    if (kind === 'jwt') {
      const isOwn = readPayload(token).iss === issuer
      if (isOwn) return { kind, ...(await ownTokens.read(token)), referenceHash: undefined }
      const principal = await verifier.verify(token, waitUntil)
      return { kind, principal, audiences: undefined, referenceHash: undefined }
    }
    const referenceHash = await credentialHash(token)
    const record = await references.find(referenceHash)
    const [audience = ''] = record?.audiences ?? []
    if (record === undefined || record.kind !== kind) return undefined
    if (failedCheckOf(record, { audience, nowMs: now() }) !== undefined) return undefined
    const principal = await principalOfRecord(record)
    return { kind, principal, audiences: record.audiences, referenceHash }
  }

  return async function readPresented(token, waitUntil) {
    try {
      return await read(token, waitUntil)
    } catch (error) {
      if (error instanceof Denied) return undefined
      throw error
    }
  }
}
