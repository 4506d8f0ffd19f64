import { Denied, Misconfigured } from '../../errors.ts'
import type { WaitUntil } from '../../isolate/after-response.ts'
import { createLruMap } from '../../isolate/lru-map.ts'
import { isWithin } from '../../isolate/period.ts'
import { countEviction, newTally, type Tally } from '../../isolate/tally.ts'
import { callOf } from '../../validators/introspection.ts'
import type { IssuerConfig } from '../../validators/issuer.ts'
import type { Principal, TokenVerifier } from '../principal.ts'
import { principalFrom } from './claims.ts'
import { createDiscovery } from './discovery.ts'
import { type IssuerRules, issuerRules } from './issuer-rules.ts'
import {
  isCompactJws,
  readHeader,
  readOwnMember,
  readPayload,
  refuseMalformed,
  verifySignature,
} from './jws.ts'
import type { VerificationKey } from './key-ring.ts'
import { createInlineKeySet, type KeySet } from './key-set.ts'
import { ofSigner, rejected, rejectedFor } from './rejection.ts'
import { createRemoteKeySet, type RemoteKeySetOptions } from './remote-key-set.ts'

export interface TokenVerifierOptions {
  /** The trusted issuers. Tokens of other issuers are refused without verification. */
  readonly issuers: readonly IssuerConfig[]
  /** This gateway. Only its tokens may name subjects of another issuer (`sub_iss`). */
  readonly ownIssuer?: string | undefined
  /** Milliseconds since the epoch. */
  readonly now?: () => number
  /** Heap that cached tokens may use. Default 40 MiB, some 10,000 tokens; 0 disables the cache. */
  readonly maxCachedBytes?: number | undefined
  readonly tally?: Tally | undefined
  readonly keySets?: Omit<RemoteKeySetOptions, 'uri' | 'locator' | 'algorithms' | 'now'>
  /** Calls to issuers that verify their tokens themselves. Default: none. */
  readonly calls?: IssuerCalls | undefined
}

/**
 * Verifies a token by a call to its issuer. Throws `Denied` and `Unavailable` as
 * {@link TokenVerifier} does.
 */
export type IssuerCall = (token: string, waitUntil?: WaitUntil) => Promise<Verified>

/** Port: the issuers that verify tokens themselves. */
export interface IssuerCalls {
  /** Returns the issuer of a text that is not a JWT. Undefined: no issuer accepts it. */
  opaqueIssuerOf(text: string): string | undefined
  /** Returns the call for the opaque tokens, or the JWTs, of an issuer. Undefined: there is none. */
  callTo(issuer: string, form: 'opaque' | 'jwt'): IssuerCall | undefined
}

export interface ReadyTokenVerifier extends TokenVerifier {
  /**
   * Resolves when every issuer has keys, except those that verify tokens themselves and those without
   * a key set. Throws `Unavailable` if one has none.
   */
  ready(waitUntil?: WaitUntil): Promise<void>
}

interface TrustedIssuer {
  readonly rules: IssuerRules
  readonly keySet: KeySet
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
  now = () => Date.now(),
  maxCachedBytes,
  tally = newTally(),
  keySets,
  calls,
}: TokenVerifierOptions): ReadyTokenVerifier {
  const trusted = new Map<unknown, TrustedIssuer>()
  for (const config of issuers) {
    if (trusted.has(config.issuer)) {
      throw new Misconfigured('The token verifier', [`${config.issuer}: duplicate issuer`])
    }
    if (!issuesJwts(config)) continue
    const keySet = createKeySet(config, now, keySets)
    trusted.set(config.issuer, { rules: issuerRules(config), keySet })
  }
  const names = issuers.map(({ issuer }) => issuer).filter((issuer) => trusted.has(issuer))
  const cache = maxCachedBytes === 0 ? undefined : createTokenCache(maxCachedBytes, tally)
  /**
   * Tokens whose signature is not valid, with the key that they were verified with. A repeated token needs no further
   * verification while its key is current: `verifySignature` gives the same verdict for the same text and key.
   */
  const forged = createLruMap<string, Pick<Verified, 'key' | 'keySet'>>({
    maxSize: MAX_FORGED_CHARACTERS,
    sizeCalculation: (_, token) => token.length,
  })

  function recall(token: string): Principal | undefined {
    const cached = cache?.get(token, now())
    if (cached !== undefined) tally.hits += 1
    return cached
  }

  async function verify(token: string, waitUntil?: WaitUntil): Promise<Principal> {
    const cached = recall(token)
    if (cached !== undefined) return cached
    tally.misses += 1
    const verifiedWith = forged.get(token)
    if (verifiedWith !== undefined && hasCurrentKey(verifiedWith)) throw rejected('signature')
    const opaque = isCompactJws(token) ? undefined : calls?.opaqueIssuerOf(token)
    const call = opaque === undefined ? verifyJwt : calls?.callTo(opaque, 'opaque')
    const verified = await (call ?? verifyJwt)(token, waitUntil)
    cache?.set(token, verified, now())
    return verified.principal
  }

  async function verifyJwt(token: string, waitUntil?: WaitUntil): Promise<Verified> {
    const header = readHeader(token)
    const payload = readPayload(token)
    const iss = readOwnMember(payload, 'iss')
    const issuer = trusted.get(iss)
    if (issuer === undefined) throw rejectedFor('iss', iss, names)
    const { rules, keySet } = issuer
    const { config } = rules
    const call = calls?.callTo(config.issuer, 'jwt')
    if (call !== undefined) return call(token, waitUntil)
    rules.checkAlgorithm(header)

    const key = await keySet.find(header, waitUntil)
    try {
      await verifySignature(token, key)
    } catch (error) {
      if (error instanceof Denied) forged.set(token, { key, keySet })
      throw error
    }
    // All other checks come after the signature, because they decide whether a refusal is a guess.
    const principal = await ofSigner(rules.signerOf(payload), () => {
      rules.checkType(header)
      return principalFrom(payload, rules, { nowMs: now(), isOwn: config.issuer === ownIssuer })
    })
    const expiresAtMs = (principal.expiresAtSeconds + config.clockTolerance) * 1000
    return { principal, key, keySet, expiresAtMs }
  }

  return {
    verify,
    recall,
    signerOf(token) {
      try {
        refuseMalformed(token)
        const payload = readPayload(token)
        return trusted.get(readOwnMember(payload, 'iss'))?.rules.signerOf(payload)
      } catch (error) {
        if (error instanceof Denied) return undefined
        throw error
      }
    },
    opaqueIssuerOf: calls?.opaqueIssuerOf,
    async ready(waitUntil) {
      const verifying = [...trusted.values()].filter(
        ({ rules }) => callOf(rules.config) === undefined,
      )
      await Promise.all(verifying.map(({ keySet }) => keySet.ready(waitUntil)))
    },
  }
}

/** Reports whether JWTs of an issuer can be verified: with its keys, or by a call. */
const issuesJwts = (config: IssuerConfig): boolean =>
  config.keySet !== 'none' || callOf(config)?.form === 'jwt'

/** Reports whether the gateway accepts any token of an issuer. Otherwise, users only sign in there. */
export const issuesTokens = (config: IssuerConfig): boolean =>
  config.keySet !== 'none' || callOf(config) !== undefined

export function createKeySet(
  { jwks, jwksUri, algorithms, issuer }: IssuerConfig,
  now: () => number,
  options: TokenVerifierOptions['keySets'],
): KeySet {
  if (jwks !== undefined) return createInlineKeySet(jwks, algorithms, now)
  const locator = jwksUri === undefined ? createDiscovery(issuer) : undefined
  return createRemoteKeySet({ ...options, uri: jwksUri ?? issuer, locator, algorithms, now })
}

/** A third of an isolate's 128 MB, for 10,000 tokens of 500 characters. */
const DEFAULT_CACHED_TOKEN_BYTES = 40 * 1024 * 1024
/**
 * Measured size of a principal and its entry, with the keys, windows and permissions that other features
 * attach to the principal, without texts that grow with the token.
 */
const ENTRY_BYTES = 2_048
/** The token, the strings of the principal, which are parts of it, and its assertion for the origin. */
const BYTES_PER_CHARACTER = 3
export const MAX_CACHED_SECONDS = 300
/** A token that is not used for this long leaves the cache, so that single calls need little memory. */
const MAX_IDLE_MS = 60_000

/** The times of an entry of a cache. In milliseconds since the epoch. */
export interface CachedUntil {
  readonly untilMs: number
  usedMs: number
}

/** Marks an entry as used. Returns false if it has ended, or the clock was set back since its last use. */
export function tryUse(entry: CachedUntil, nowMs: number): boolean {
  const { untilMs, usedMs } = entry
  entry.usedMs = nowMs
  return isWithin(usedMs, untilMs - usedMs, nowMs)
}

/**
 * Returns the approximate heap size of a cached principal, for a text of this length, with all that is kept
 * for as long as the principal is.
 */
export function cachedBytes(characters: number): number {
  return ENTRY_BYTES + BYTES_PER_CHARACTER * characters
}

/** The part of an LRU cache that {@link dropEnded} uses. */
interface EntriesByUse<Entry> {
  /** The keys, the least recently used one first. */
  rkeys(): Iterator<string, unknown>
  peek(key: string): Entry | undefined
  delete(key: string): boolean
}

/**
 * Makes room before an entry is added: removes up to two entries that have ended, or that were not used
 * for a minute. They are among the least recently used ones.
 */
export function dropEnded(entries: EntriesByUse<CachedUntil>, nowMs: number): void {
  for (let dropped = 0; dropped < 2; dropped++) {
    const { value: oldest, done } = entries.rkeys().next()
    if (done) return
    const entry = entries.peek(oldest)
    if (entry === undefined) return
    if (nowMs < entry.untilMs && isWithin(entry.usedMs, MAX_IDLE_MS, nowMs)) return
    entries.delete(oldest)
  }
}

/** A verified token, and what its validity depends on. */
export interface Verified {
  readonly principal: Principal
  /** The key that verified it. Undefined: the issuer itself did. */
  readonly key?: VerificationKey | undefined
  readonly keySet?: KeySet | undefined
  /** Milliseconds since the epoch: `exp` plus the issuer's clock tolerance, or earlier. */
  readonly expiresAtMs: number
}

type Cached = Omit<Verified, 'expiresAtMs'> & CachedUntil & { readonly token: string }

/**
 * Creates an LRU from token to principal, bounded by its heap size. An entry matches only the exact text of
 * its token: the grammar allows one spelling of a token, and any other text is verified by itself.
 * An entry lives until the token expires, at most 5 minutes, and only while its key set, if it has
 * one, still contains its key. New entries displace those that were not used for a minute.
 *
 * Refused tokens do NOT enter this cache: a sender can vary them at no cost, and would displace valid tokens. Those
 * whose signature is not valid have a smaller cache of their own.
 */
export function createTokenCache(
  maxBytes: number = DEFAULT_CACHED_TOKEN_BYTES,
  tally = newTally(),
) {
  const entries = createLruMap<string, Cached>({
    maxSize: maxBytes,
    // What introspection says of a token is not in its text.
    sizeCalculation: ({ key, principal, token }) =>
      cachedBytes(token.length + (key === undefined ? JSON.stringify(principal).length : 0)),
    dispose: (_entry, _token, reason) => countEviction(tally, reason),
  })
  return {
    /** Returns the principal of a token that is still valid, the same object each time. */
    get(token: string, nowMs: number): Principal | undefined {
      const name = nameOf(token)
      const entry = entries.get(name)
      // Another token can have the same end.
      if (entry === undefined || entry.token !== token) return undefined
      if (tryUse(entry, nowMs) && hasCurrentKey(entry)) return entry.principal
      entries.delete(name)
      return undefined
    },
    set(token: string, verified: Verified, nowMs: number): void {
      const untilMs = Math.min(verified.expiresAtMs, nowMs + MAX_CACHED_SECONDS * 1000)
      dropEnded(entries, nowMs)
      // All members at once: V8 keeps those that follow a spread in an array of their own.
      const { principal, key, keySet } = verified
      entries.set(nameOf(token), { principal, key, keySet, token, untilMs, usedMs: nowMs })
    },
  }
}

/** Characters of all texts together: some 300 tokens. */
const MAX_FORGED_CHARACTERS = 262_144

/** What every JWT begins with: `{"` in base64url. */
const JWT_BEGIN = 'eyJ'
/** The number of characters of the end of a signature: 258 bits. */
const NAME_CHARACTERS = 43

/**
 * Returns the end of the signature of a JWT, and any other text as it is. Hashing a whole token takes longer than
 * several stages, and comparing it with that of the entry does not.
 */
const nameOf = (token: string): string =>
  token.startsWith(JWT_BEGIN) ? token.slice(-NAME_CHARACTERS) : token

const hasCurrentKey = ({ key, keySet }: Pick<Verified, 'key' | 'keySet'>): boolean =>
  key === undefined || keySet?.isCurrent(key) === true
