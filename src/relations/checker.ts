/** Whether callers have the relations that routes demand: who is asked, and what is known already. */
import { type Denial, Unavailable } from '../errors.ts'
import type { Principal } from '../tokens/principal.ts'
import type {
  RelationAnswer,
  RelationAuthority,
  RelationDecision,
  RelationQuery,
} from './authority.ts'
import type { RelationCache } from './cache.ts'
import { decodeConsistency } from './consistency.ts'
import type { RelationRule } from './rule.ts'

/** What a rule and its checker read of a request. */
export interface RelationRequest {
  readonly principal: Principal
  /** A parameter of the path. */
  readonly paramOf: (name: string) => string | undefined
  /** `X-Consistency-Token` as the caller sent it; undefined: none. */
  readonly consistencyToken: string | undefined
}

/** What was decided; `Unavailable`: nobody could tell, which is never allowed. */
export type RelationVerdict = RelationDecision | Unavailable

/** What `admit` and `authorize` share. Without a cache, `recall` knows nothing. */
export interface RelationChecker {
  /** Whether `admit` asks in the same call as everything else. */
  readonly rides: boolean
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /**
   * What is to be asked about a request. A denial where nothing can be: `relation_missing` for callers
   * of another issuer and for values that are no ids, `request_malformed` for a token that is none of
   * the caller's tenant.
   */
  queryOf(rule: RelationRule, request: RelationRequest): RelationQuery | Denial
  /** What this isolate knows; undefined: ask. */
  recall(query: RelationQuery): RelationDecision | undefined
  /** Keeps an answer. `askedMs` is when it was asked for, by `now`. */
  remember(query: RelationQuery, answer: RelationAnswer, askedMs: number): void
  /** Asks the authority, unless this isolate knows. Returns `Unavailable`, rather than throw it. */
  check(query: RelationQuery): Promise<RelationVerdict>
}

export interface RelationCheckerOptions {
  readonly authority: RelationAuthority
  /** Default: nothing is remembered. */
  readonly cache?: RelationCache | undefined
  /** Callers whom others vouch for have no relation to anything. Undefined: any issuer will do. */
  readonly issuers?: ReadonlySet<string> | undefined
  /** Whether the store of `admit` was made with the same check. Default false. */
  readonly rides?: boolean
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/**
 * Makes the checker of one isolate, to be given to `admit` and `authorize` alike. It decides nothing by
 * itself: it puts the question, asks the authority, and remembers what the cache may.
 */
export function createRelationChecker({
  authority,
  cache,
  issuers,
  rides = false,
  now,
}: RelationCheckerOptions): RelationChecker {
  const recall = (query: RelationQuery) => cache?.recall(query, now())
  const remember: RelationChecker['remember'] = (query, answer, askedMs) =>
    cache?.remember(query, answer, askedMs)

  return {
    rides,
    now,
    queryOf(rule, { principal, paramOf, consistencyToken }) {
      if (issuers?.has(principal.issuer) === false) return missing(rule)
      const query = rule.queryOf(principal, paramOf)
      if (query === undefined) return missing(rule)
      if (consistencyToken === undefined) return query
      const atLeast = decodeConsistency(consistencyToken, query.tenant, now())
      if (atLeast === undefined) return { code: 'request_malformed', check: 'consistency_token' }
      return { ...query, atLeast }
    },
    recall,
    remember,
    async check(query) {
      const known = recall(query)
      if (known !== undefined) return known
      const askedMs = now()
      try {
        const answer = await authority.check(query)
        remember(query, answer, askedMs)
        return answer.decision
      } catch (error) {
        if (error instanceof Unavailable) return error
        throw error
      }
    },
  }
}

/** Why a decision refuses; undefined: it allows. `unknown` refuses. */
export function denialOf(rule: RelationRule, decision: RelationDecision): Denial | undefined {
  switch (decision.outcome) {
    case 'allowed':
      return undefined
    case 'denied':
      return missing(rule)
    case 'unknown':
      return { code: 'relation_unknown', why: decision.why }
  }
}

const missing = ({ name }: RelationRule): Denial => ({ code: 'relation_missing', relation: name })
