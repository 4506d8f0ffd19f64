/** Reads a token of any kind that a client presents for introspection or revocation. */

import type { Principal } from '../../access/principal.ts'
import { principalFrom } from '../../access/tokens/claims.ts'
import { classifyToken } from '../../access/tokens/credential.ts'
import { issuerRules } from '../../access/tokens/issuer-rules.ts'
import { readHeader, readOwnMember, readPayload, verifySignature } from '../../access/tokens/jws.ts'
import { createInlineKeySet } from '../../access/tokens/key-set.ts'
import { checkRecord, credentialHash, principalOfRecord } from '../../access/tokens/reference.ts'
import { parseRefreshToken } from '../../access/tokens/refresh-token.ts'
import type { FoundSession } from '../../access/tokens/refresh-tokens.ts'
import { rejected } from '../../access/tokens/rejection.ts'
import { ACCESS_TOKEN_TYPE } from '../../access/tokens/token-issuer.ts'
import { Denied } from '../../errors.ts'
import type { WaitUntil } from '../../isolate/after-response.ts'
import { ownIssuer } from '../../validators/issuer.ts'
import type { AuthorizationServerOptions } from './options.ts'

/** A valid access token. */
export interface PresentedAccess {
  readonly kind: 'jwt' | 'opaque' | 'api_key'
  readonly principal: Principal
  /** Undefined for a token of another issuer: its audience is the gateway. */
  readonly audiences: readonly string[] | undefined
  /** The hash under which the record of a reference is stored. */
  readonly referenceHash: string | undefined
}

/** A refresh token. It may have been used before, and its session may have been ended. */
export interface PresentedRefresh extends FoundSession {
  readonly kind: 'refresh'
}

export type Presented = PresentedAccess | PresentedRefresh

export type PresentedTokenReader = ReturnType<typeof createPresentedTokenReader>

/**
 * Creates the reader. It returns undefined for a token that is not valid: unknown, malformed,
 * expired or ended. It changes nothing. The form of a token identifies its kind, so no hint is
 * needed. Does NOT check revocation of access tokens, nor whether the client may introspect them.
 * Throws `Unavailable` if a dependency is not available.
 */
export function createPresentedTokenReader(
  options: Pick<
    AuthorizationServerOptions,
    'issuer' | 'keys' | 'verifier' | 'references' | 'refreshTokens' | 'now'
  >,
) {
  const { issuer, verifier, references, refreshTokens, now } = options
  const readOwn = createOwnTokenReader(options)

  async function read(token: string, waitUntil?: WaitUntil): Promise<Presented | undefined> {
    if ((await parseRefreshToken(token)) !== undefined) {
      const found = await refreshTokens.find(token)
      return found && { kind: 'refresh', ...found }
    }
    const kind = classifyToken(token, { references: true })
    if (kind === 'jwt') {
      const isOwn = readPayload(token).iss === issuer
      if (isOwn) return { kind, ...(await readOwn(token)), referenceHash: undefined }
      const principal = await verifier.verify(token, waitUntil)
      return { kind, principal, audiences: undefined, referenceHash: undefined }
    }
    const referenceHash = await credentialHash(token)
    const record = await references.find(referenceHash)
    const [audience = ''] = record?.audiences ?? []
    if (record === undefined || record.kind !== kind) return undefined
    if (checkRecord(record, { audience, nowMs: now() }) !== undefined) return undefined
    const principal = await principalOfRecord(record)
    return { kind, principal, audiences: record.audiences, referenceHash }
  }

  return async function readPresented(token: string, waitUntil?: WaitUntil) {
    try {
      return await read(token, waitUntil)
    } catch (error) {
      if (error instanceof Denied) return undefined
      throw error
    }
  }
}

/**
 * Creates the reader of the gateway's own JWTs. It performs the checks of the gateway's verifier
 * except that of the audience, which may be another resource. The result does NOT authorize a
 * request to the gateway. Throws `Denied` (`token_rejected`).
 */
function createOwnTokenReader({
  issuer,
  keys,
  now,
}: Pick<AuthorizationServerOptions, 'issuer' | 'keys' | 'now'>) {
  const config = ownIssuer(issuer, keys)
  const { algorithms } = config
  const keySet = createInlineKeySet(config.jwks, algorithms, now)

  return async function readOwn(token: string) {
    const header = readHeader(token)
    const payload = readPayload(token)
    if (readOwnMember(payload, 'iss') !== issuer) throw rejected('iss')
    if (!algorithms.some((algorithm) => algorithm === header.alg)) throw rejected('alg')
    if (header.typ !== ACCESS_TOKEN_TYPE) throw rejected('typ')
    await verifySignature(token, await keySet.find(header))
    const audiences = audiencesOf(readOwnMember(payload, 'aud'))
    const options = { nowMs: now(), isOwn: true }
    const rules = issuerRules({ ...config, audience: audiences })
    const principal = await principalFrom(payload, rules, options)
    return { principal, audiences: principal.audiences }
  }
}

function audiencesOf(aud: unknown): string[] {
  const all = Array.isArray(aud) ? aud : [aud]
  if (all.length === 0 || !all.every((one) => typeof one === 'string')) throw rejected('aud')
  return all
}
