/** What the admission decision needs of a store, in one round trip each time. */
import type { Unavailable } from '../errors.ts'
import type { RelationAnswer, RelationQuery } from '../relations/authority.ts'
import type { DpopProof } from '../tokens/dpop.ts'
import type { Reference, ReferenceRecord } from '../tokens/reference.ts'
import type { BanKey } from './ban.ts'
import type { LimitRequest, LimitRule, RateLimit } from './limit.ts'
import type { LimitScope } from './limit-key.ts'
import type { RevocationFacts, RevocationKeys } from './revocation.ts'
import type { FeedCursor, FeedReply } from './revocation-feed.ts'

/** A proof of possession, to be used up. */
export type ProofUse = Pick<DpopProof, 'replayKey' | 'replayTtlSeconds'>

/** Everything that one request asks of the store. */
export interface AdmissionQuery {
  /** No keys at all for an anonymous caller. */
  readonly revocation: RevocationKeys
  readonly bans: readonly BanKey[]
  /** Bans that only would hold: told, and nothing else. */
  readonly observedBans?: readonly BanKey[] | undefined
  readonly limits: readonly LimitRequest[]
  readonly proof?: ProofUse | undefined
  /** A relation that is asked for in the same call. */
  readonly relation?: RelationQuery | undefined
  /** Where the isolate's view of changes stands; default: it has none. */
  readonly since?: FeedCursor | undefined
  /**
   * There is no request: nothing is taken of limits but what is asked ahead. Sent once, for what comes
   * back must not come back twice. Default false.
   */
  readonly isRenewal?: boolean
  /** By which it is decided whether a ban has ended, milliseconds since the epoch. */
  readonly nowMs: number
}

/** The store's answer, in the order of the query. A list may end before those that are not there. */
export interface AdmissionFacts extends RevocationFacts {
  /** Seconds since the epoch until which each ban holds; undefined: none. */
  readonly bannedUntilSeconds: readonly (number | undefined)[]
  readonly observedUntilSeconds: readonly (number | undefined)[]
  /**
   * A window that could not be counted while the rest could is `Unavailable` by itself; undefined:
   * nobody looked, for the caller was to be refused anyway.
   */
  readonly limits: readonly (RateLimit | Unavailable | undefined)[]
  /** The proof had been used before. False without one. */
  readonly proofUsed: boolean
  /** Where a relation was asked for; `Unavailable` where that cannot be told, and the rest can. */
  readonly relation?: RelationAnswer | Unavailable | undefined
  /** What has changed, where that was asked: read before all the rest, in the same step. */
  readonly feed?: FeedReply
}

/** A limit whose window is known, or is to be named by what the store knows of the caller. */
export interface ReferenceLimit {
  readonly rule: LimitRule
  /** As in {@link LimitRequest}, or whom of the principal the window is for. */
  readonly window: { readonly key: string } | { readonly by: Exclude<LimitScope, 'address'> }
}

/** A request with a credential that only the store knows. */
export interface ReferenceQuery {
  readonly reference: Pick<Reference, 'hash'>
  /** Must be among the record's audiences for its principal's limits to count. */
  readonly audience: string
  /** Key of the thumbprint that the caller has proved to hold; undefined: none. */
  readonly thumbprint: string | undefined
  /** The key of the client address's ban. */
  readonly addressBan: string
  /** The key of the one that would hold, where such bans are looked for, the subject's as well. */
  readonly observedBan?: string | undefined
  readonly limits: readonly ReferenceLimit[]
  readonly proof: ProofUse | undefined
  /** Milliseconds since the epoch. */
  readonly nowMs: number
}

export interface ReferenceFacts {
  /** Undefined: there is no such reference. */
  readonly record: ReferenceRecord | undefined
  /**
   * What was read, by key: of a revoked token any number; of cut-offs and bans seconds since the
   * epoch; undefined: not there. Has every key that decides over the record's principal.
   */
  readonly read: ReadonlyMap<string, number | undefined>
  /** In the order of the query; undefined: not counted, for the caller was to be refused anyway. */
  readonly limits: readonly ({ key: string; state: RateLimit | Unavailable } | undefined)[]
  readonly proofUsed: boolean
}

/** Port. Throws `Unavailable` whenever it cannot tell; an absent or odd reply is never a "no". */
export interface AdmissionStore {
  /**
   * Answers a query in ONE round trip. What the request costs is taken of every exact limit or of
   * none: of none where it is revoked, cut off or banned, where its proof was used before, or where
   * one of its limits refuses it. A proof is used up unless a revocation, a cut-off or a ban holds.
   */
  consult(query: AdmissionQuery): Promise<AdmissionFacts>
  /**
   * Finds out what a reference stands for, and answers all that {@link consult} would, in ONE round
   * trip. Limits count only windows that are known beforehand for a reference that is unknown or not
   * good.
   */
  resolve(query: ReferenceQuery): Promise<ReferenceFacts>
}
