/** Reads a token of any kind that a client presents for introspection or revocation. */
import { Denied } from '../errors.ts'
import type { Principal, TokenVerifier, WaitUntil } from '../identity/principal.ts'
import type { FoundSession, RefreshTokens } from '../tokens/access-grant.ts'
import { kindOf } from '../tokens/credential.ts'
import { readPayload } from '../tokens/jws.ts'
import {
  credentialHash,
  failedCheckOf,
  principalOfRecord,
  type ReferenceStore,
} from '../tokens/reference.ts'
import { parseRefreshToken } from '../tokens/refresh-token.ts'
import type { OwnTokenReader } from './own-token.ts'

/** A valid access token. */
export interface PresentedAccess {
  readonly kind: 'jwt' | 'opaque' | 'api_key'
  readonly principal: Principal
  /** `aud`. Undefined for a token of another issuer: its audience is the gateway. */
  readonly audiences: readonly string[] | undefined
  /** The hash under which the record of a reference is stored. */
  readonly referenceHash: string | undefined
}

/** A refresh token of a session that has not ended. The token itself may have been used before. */
export interface PresentedRefresh extends FoundSession {
  readonly kind: 'refresh'
}

export type Presented = PresentedAccess | PresentedRefresh

/** Reads a token. Returns undefined if it is not valid: unknown, malformed, expired or ended. */
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
 * Creates the reader. It changes nothing. The form of a token identifies its kind, so no hint is
 * needed. Does NOT check revocation of access tokens, nor whether the client may introspect them.
 * Throws `Unavailable` if a dependency is not available.
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
