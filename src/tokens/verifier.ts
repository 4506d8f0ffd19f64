/**
 * Verifies a bearer token and returns its principal (RFC 7519 section 7.2, RFC 9068 section 4, RFC
 * 8725).
 */

import { Misconfigured } from '../errors.ts'
import type { Principal, TokenVerifier, WaitUntil } from '../identity/principal.ts'
import { newTally, type Tally } from '../isolate/tally.ts'
import type { IssuerConfig } from '../validators/environment.ts'
import { principalFrom } from './claims.ts'
import { own, readHeader, readPayload, verifySignature } from './jws.ts'
import { createInlineKeySet, type KeySet } from './key-set.ts'
import { rejected } from './rejection.ts'
import { createRemoteKeySet, type RemoteKeySetOptions } from './remote-key-set.ts'
import { createTokenCache } from './token-cache.ts'

export interface TokenVerifierOptions {
  /** The trusted issuers. Tokens of other issuers are refused without verification. */
  readonly issuers: readonly IssuerConfig[]
  /**
   * The trusted issuer that is this gateway. Only its tokens may name subjects of another issuer
   * (`sub_iss`). Default: none.
   */
  readonly ownIssuer?: string | undefined
  /** Milliseconds since the epoch. */
  readonly now?: () => number
  /**
   * Size of the cache of verified tokens, in bytes. Default 16 MiB, some 10,000 tokens; 0 disables
   * it.
   */
  readonly maxCachedBytes?: number
  /** Counts hits and misses. */
  readonly tally?: Tally | undefined
  /** How key sets are downloaded and cached; see `createRemoteKeySet`. */
  readonly keySets?: Omit<RemoteKeySetOptions, 'uri' | 'algorithms' | 'now'>
}

/** A verifier that also reports whether it is ready. */
export interface ReadyTokenVerifier extends TokenVerifier {
  /** Resolves when every issuer has keys. Throws `Unavailable` if one has none. */
  ready(waitUntil?: WaitUntil): Promise<void>
}

interface TrustedIssuer {
  readonly config: IssuerConfig
  readonly keySet: KeySet
  readonly typ: string
}

/**
 * Creates the verifier of an isolate. The token's `iss` selects the issuer, by exact comparison
 * (RFC 8725 section 3.8). The algorithm must be allowed for this issuer and for the selected key.
 * No other claim is used before the signature is verified. For any input, the outcome is a
 * principal, `Denied` or `Unavailable`.
 */
export function createTokenVerifier({
  issuers,
  ownIssuer,
  now = Date.now,
  maxCachedBytes,
  tally = newTally(),
  keySets,
}: TokenVerifierOptions): ReadyTokenVerifier {
  const trusted = new Map<unknown, TrustedIssuer>()
  for (const config of issuers) {
    if (trusted.has(config.issuer)) {
      throw new Misconfigured('The token verifier', [`${config.issuer}: stands there twice`])
    }
    const keySet = keySetOf(config, now, keySets)
    trusted.set(config.issuer, { config, keySet, typ: mediaType(config.typ) })
  }
  const cache = maxCachedBytes === 0 ? undefined : createTokenCache(maxCachedBytes)

  function recall(token: string): Principal | undefined {
    const cached = cache?.get(token, now())
    if (cached !== undefined) tally.hits += 1
    return cached
  }

  async function verify(token: string, waitUntil?: WaitUntil): Promise<Principal> {
    const cached = recall(token)
    if (cached !== undefined) return cached
    tally.misses += 1

    const header = readHeader(token)
    const payload = readPayload(token)
    const issuer = trusted.get(own(payload, 'iss'))
    if (issuer === undefined) throw rejected('iss')
    const { config, keySet, typ } = issuer
    if (!config.algorithms.some((algorithm) => algorithm === header.alg)) throw rejected('alg')
    if (header.typ === undefined || mediaType(header.typ) !== typ) throw rejected('typ')

    const key = await keySet.find(header, waitUntil)
    await verifySignature(token, key)
    const principal = await principalFrom(payload, config, {
      nowMs: now(),
      isOwn: config.issuer === ownIssuer,
    })
    const expiresAtMs = (principal.expiresAtSeconds + config.clockTolerance) * 1000
    cache?.set(token, { principal, key, keySet, expiresAtMs }, now())
    return principal
  }

  return {
    verify,
    recall,
    async ready(waitUntil) {
      await Promise.all([...trusted.values()].map(({ keySet }) => keySet.ready(waitUntil)))
    },
  }
}

function keySetOf(
  { jwks, jwksUri, algorithms, issuer }: IssuerConfig,
  now: () => number,
  options: TokenVerifierOptions['keySets'],
): KeySet {
  if (jwks !== undefined) return createInlineKeySet(jwks, algorithms, now)
  if (jwksUri !== undefined)
    return createRemoteKeySet({ ...options, uri: jwksUri, algorithms, now })
  throw new Misconfigured('The token verifier', [`${issuer}: has neither jwks nor jwksUri`])
}

/** Normalises a media type: in lower case, without `application/` (RFC 7515 section 4.1.9). */
function mediaType(typ: string): string {
  return typ.toLowerCase().replace(/^application\//, '')
}
