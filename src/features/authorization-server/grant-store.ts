/** Port to the stored state of a grant (revocation, replay, counters), and checks of its values. */

import type { Principal } from '../../access/principal.ts'
import {
  deriveRevocationKeys,
  MAX_ISSUED_AHEAD_SECONDS,
  revokedBy,
} from '../../access/revocation/revocation.ts'
import { deriveCutoffKeys } from '../../access/tokens/access-grant.ts'
import type { DpopProof } from '../../access/tokens/dpop.ts'
import type { Session } from '../../access/tokens/refresh-family.ts'
import { oauthRefused } from '../../access/tokens/rejection.ts'
import { Denied } from '../../errors.ts'
import type { RedisKeys } from '../../redis/keys.ts'
import { malformed, readSeconds } from '../../redis/reply.ts'

/**
 * Port: reads everything in one round trip, or in none if the query is empty. Throws `Unavailable`
 * if the store cannot read or write.
 */
export interface GrantStore {
  /** The names under which this store keeps what queries name. */
  readonly keys: RedisKeys
  /** Whether sessions are in other places, which a cutoff may reach later than this store. Default false. */
  readonly isAhead?: boolean
  /**
   * Returns the string values in the order of `keys`. Records the use of the proof; `proofIsNew` is
   * true on first use and without a proof. Adds one to all `counters` in one atomic step, or
   * returns the exhausted one that takes longest to reset.
   */
  consult(query: {
    readonly keys: readonly string[]
    /**
     * The subject of the credential that the keys concern. Its lane may have a revocation before this store does, and
     * the other way round: the later one counts. Absent: only this store is read.
     */
    readonly subject?: string | undefined
    readonly proof?: DpopProof | undefined
    readonly counters?: readonly GrantCounter[]
  }): Promise<GrantFacts>
}

/** A counter of a fixed window. */
export interface GrantCounter {
  readonly key: string
  /** Name of the limit in the audit event. */
  readonly name: string
  readonly limit: number
  readonly windowSeconds: number
}

export interface GrantFacts {
  readonly values: readonly (string | null)[]
  readonly proofIsNew: boolean
  /** The name of a counter at its limit. In this case no counter was changed. */
  readonly exhausted: { readonly limit: string; readonly retryAfterSeconds: number } | undefined
}

/**
 * Returns the earliest `iat` that no cutoff revokes: now, or the second after the latest cutoff. A
 * token with the cutoff's own second would be revoked. A login right after "end all sessions" would
 * then fail for the life of that token. Throws `Denied` (`invalid_grant`) if that second is further
 * ahead than the clocks of gateways may differ.
 */
export function issuableAtSeconds(
  revokedBefore: readonly (string | null)[],
  nowMs: number,
): number {
  const nowSeconds = Math.floor(nowMs / 1000)
  const earliest = Math.max(
    nowSeconds,
    ...revokedBefore.map((value) => (consultedSeconds(value) ?? -1) + 1),
  )
  if (earliest > nowSeconds + MAX_ISSUED_AHEAD_SECONDS)
    throw oauthRefused('invalid_grant', 'cut_off')
  return earliest
}

/**
 * Returns the second in a value of a consulted key, or undefined if the key does not exist. Throws
 * `Unavailable` if the value is not a second, or is missing from the reply. Neither may count as
 * "no cutoff".
 */
export function consultedSeconds(value: string | null | undefined): number | undefined {
  if (value === undefined) throw malformed()
  return value === null ? undefined : readSeconds(value)
}

/** Throws `Denied` (`invalid_dpop_proof`) if the proof was used before (RFC 9449 section 11.1). */
export function refuseReplay({ proofIsNew }: { readonly proofIsNew: boolean }): void {
  if (!proofIsNew) throw new Denied({ code: 'invalid_dpop_proof', check: 'replay' })
}

/** A browser session in which a user has allowed a client, by the keys of what ends it. */
export interface LoginOfGrant {
  readonly token: string
  readonly cutoffs: readonly string[]
  readonly issuedAtSeconds: number
}

/**
 * Records the use of a proof by a grant that continues a session, or a `login`. Returns whether a revocation covers it
 * that its own place may not have yet: a token that is issued meanwhile would be newer than the cutoff, and outlive it.
 * The store of the session finds all others, so one server is not asked.
 */
export async function isCutOff(
  store: GrantStore,
  issuer: string,
  { id, grant, startedAtSeconds }: Session,
  proof: DpopProof | undefined,
  login?: LoginOfGrant,
): Promise<boolean> {
  if (!store.isAhead) {
    refuseReplay(await store.consult({ keys: [], proof }))
    return false
  }
  const ofSession = await deriveCutoffKeys(store.keys, { ...grant, session: id }, issuer)
  const ofLogin = login?.cutoffs ?? []
  const keys = [...ofSession, ...ofLogin, ...(login ? [login.token] : [])]
  const facts = await store.consult({ keys, proof })
  refuseReplay(facts)
  return keys.some((key, at) => {
    const value = consultedSeconds(facts.values[at]) ?? -1
    if (key === login?.token) return value >= 0
    const isOfSession = at < ofSession.length
    return value >= (isOfSession ? startedAtSeconds : (login?.issuedAtSeconds ?? 0))
  })
}

/**
 * Returns the keys to read for a token: its own revocation, and every revocation cutoff that covers
 * it. `revokedBy` decides about their values, in the same order.
 */
export async function revocationLookup(keys: RedisKeys, principal: Principal) {
  const revocation = await deriveRevocationKeys(keys, principal)
  const { token, revokedBefore } = revocation
  const own = token === undefined ? [] : [token]
  const cutoffs = revokedBefore.map(({ key }) => key)
  return {
    /** The same for every encoding of the token, and of no other token if it has an id. */
    identity: revocation.cacheKey,
    keys: [...own, ...cutoffs],
    /** Those of {@link keys} that are cutoffs. */
    cutoffs,
    revokedBy(values: readonly (string | null)[]) {
      const tokenRevoked = token !== undefined && values[0] !== null
      const revokedBeforeSeconds = revokedBefore.map((_, index) =>
        consultedSeconds(values[own.length + index]),
      )
      return revokedBy(principal, revocation, { tokenRevoked, revokedBeforeSeconds })
    },
  }
}
