/** The store port of the admission decision: one round trip for each request. */

import type { Unavailable } from '../../errors.ts'
import type { RedisKeys } from '../../redis/keys.ts'
import type { BanKey } from '../abuse/ban.ts'
import type { RelationAnswer, RelationQuery } from '../relations/decision-point.ts'
import type { FeedCursor, FeedReply } from '../revocation/feed.ts'
import type { RevocationFacts, RevocationKeys } from '../revocation/revocation.ts'
import type { DpopProof } from '../tokens/dpop.ts'
import type { Reference, ReferenceRecord } from '../tokens/reference.ts'
import type { LimitRequest, LimitRule, RateLimit } from './limit.ts'
import type { LimitScope } from './limit-key.ts'

/** A proof of possession to mark as used. */
export type ProofUse = Pick<DpopProof, 'replayId' | 'replayTtlSeconds'>

/** Everything that one request needs from the store. */
export interface AdmissionQuery {
  /**
   * The subject, or the address of an anonymous caller: a cluster has its keys in one lane. Default:
   * the query has only limits.
   */
  readonly caller?: string | undefined
  readonly revocation: RevocationKeys
  readonly bans: readonly BanKey[]
  /** Bans in observe mode. They are reported and refuse nothing. */
  readonly observedBans?: readonly BanKey[] | undefined
  readonly limits: readonly LimitRequest[]
  readonly proof?: ProofUse | undefined
  readonly relation?: RelationQuery | undefined
  /** The cursor of the isolate's view of revocations. Default: the feed is not read. */
  readonly since?: FeedCursor | undefined
  /**
   * The call belongs to no request: it takes only the units that the isolate leases. The call is
   * never retried, because returned units must not be returned twice. Default false.
   */
  readonly isRenewal?: boolean
  /**
   * Takes nothing from exact limits and writes nothing: the states are those that the request would
   * find. Only without a proof, leases and limits of another engine. Default false.
   */
  readonly isReading?: boolean
  /**
   * The names of revocations and bans begin with it, in place of the prefix of the connection, which they have
   * in Redis: on a cluster, that of a lane. Default: the prefix of the connection.
   */
  readonly keyPrefix?: string | undefined
  /** The reply has the time of the take; see `AdmissionFacts.takenMicros`. Default false. */
  readonly reportsTake?: boolean
  /** Milliseconds since the epoch. Decides whether a ban has ended. */
  readonly nowMs: number
}

/** The answer, in the order of the query. A list may be shorter if its last entries are absent. */
export interface AdmissionFacts extends RevocationFacts {
  /** Seconds since the epoch until which each ban is in force; undefined: no ban. */
  readonly bannedUntilSeconds: readonly (number | undefined)[]
  readonly observedUntilSeconds: readonly (number | undefined)[]
  /**
   * `Unavailable`: this window could not be counted, although others could. Undefined: not counted,
   * because the request is refused anyway.
   */
  readonly limits: readonly (RateLimit | Unavailable | undefined)[]
  /** Whether the proof was used before. False without a proof. */
  readonly proofUsed: boolean
  /** The answer to the relation query. `Unavailable` if only that check failed. */
  readonly relation?: RelationAnswer | Unavailable | undefined
  /**
   * If the query requests it, and nothing refused the request before its limits: when their units were
   * taken, in microseconds of the server's clock. Only the server interprets it.
   */
  readonly takenMicros?: string | undefined
  /** The changes since the cursor of the query, read before everything else. */
  readonly feed?: FeedReply
}

export interface ReferenceLimit {
  readonly rule: LimitRule
  /** The window, or the property of the record's principal that the store derives it from. */
  readonly window: (
    | Pick<LimitRequest, 'key' | 'owner'>
    | { readonly by: Exclude<LimitScope, 'address'> }
  ) & {
    /** The window of a subject is the same in every tenant. Default: as the engine of the rule. */
    readonly isEverywhere?: boolean
  }
  /** As in `LimitRequest`. */
  readonly slot?: string | undefined
}

export interface ReferenceQuery {
  readonly reference: Pick<Reference, 'hash'>
  /** Must be among the record's audiences. Otherwise limits of its principal are not counted. */
  readonly audience: string
  /** The key thumbprint that the caller has proved to possess; undefined: none. */
  readonly thumbprint: string | undefined
  /** The key of the client address's ban. */
  readonly addressBan: string
  /** The key of the same ban in observe mode. If set, the store also reads the subject's. */
  readonly observedBan?: string | undefined
  /** The key of the ban of the address's credentials, and the same in observe mode. Default: not read. */
  readonly credentialsBan?: string | undefined
  readonly observedCredentialsBan?: string | undefined
  readonly limits: readonly ReferenceLimit[]
  readonly proof: ProofUse | undefined
  /** Records the use of an API key, if no revocation and no ban refuses it. Default false. */
  readonly recordsUse?: boolean
  /** As in `AdmissionQuery`. */
  readonly isReading?: boolean
  /** Milliseconds since the epoch. */
  readonly nowMs: number
}

export interface ReferenceFacts {
  /** Undefined: there is no such reference. */
  readonly record: ReferenceRecord | undefined
  /**
   * The values of every key that decides about the record's principal. A revoked token has any
   * number; cutoffs and bans have seconds since the epoch; undefined: absent.
   */
  readonly read: ReadonlyMap<string, number | undefined>
  /** In the order of the query. Undefined: not counted, because the request is refused anyway. */
  readonly limits: readonly ({ key: string; state: RateLimit | Unavailable } | undefined)[]
  readonly proofUsed: boolean
}

/** Keys that decide about one caller. */
export interface CallerKeys {
  /** As in `AdmissionQuery`. */
  readonly caller: string
  readonly keys: readonly string[]
}

/**
 * Port: the store of admission for callers with signed tokens. Throws `Unavailable` if it cannot answer. It
 * never treats a missing or malformed reply as "not refused".
 */
export interface CallerStore {
  /** The names under which this store keeps what queries name. */
  readonly keys: RedisKeys
  /**
   * Answers a query in ONE round trip. It takes the cost of the request from all exact limits or
   * from none. It takes nothing if the token is revoked or covered by a cutoff, a ban is in force,
   * the proof was used before, or a limit refuses. It marks the proof as used unless a revocation,
   * a cutoff or a ban refuses the request.
   */
  consult(query: AdmissionQuery): Promise<AdmissionFacts>
  /**
   * Returns the values of keys of revocations, cutoffs and bans, as `ReferenceFacts.read` does, in ONE
   * round trip. Takes nothing.
   */
  read(callers: readonly CallerKeys[]): Promise<ReferenceFacts['read']>
}

/** Port: the store of admission for opaque tokens and API keys as well. */
export interface AdmissionStore extends CallerStore {
  /**
   * Resolves a reference and answers everything that {@link consult} answers, in ONE round trip.
   * For a reference that is unknown or not valid, it counts only windows with a key that is given
   * in advance.
   */
  resolve(query: ReferenceQuery): Promise<ReferenceFacts>
}
