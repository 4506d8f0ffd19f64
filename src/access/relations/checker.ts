import { Unavailable } from '../../errors.ts'
import type { Denial } from '../../problems/reasons.ts'
import type { Principal } from '../principal.ts'
import type { RelationCache } from './cache.ts'
import { decodeConsistency } from './consistency.ts'
import type {
  PolicyDecisionPoint,
  RelationAnswer,
  RelationDecision,
  RelationQuery,
} from './decision-point.ts'
import type { RelationRule } from './rule.ts'

export interface RelationRequest {
  readonly principal: Principal
  /** Returns a path parameter. */
  readonly paramOf: (name: string) => string | undefined
  /** The `X-Consistency-Token` header. */
  readonly consistencyToken: string | undefined
}

/** `Unavailable`: the policy decision point could not answer. Only `allowed` allows the request. */
export type RelationVerdict = RelationDecision | Unavailable

export interface RelationChecker {
  /** Whether `admit` sends the relation check in the same round trip as its other commands. */
  readonly isIncludedInAdmission: boolean
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /**
   * Returns the query for a request, or a denial when no query is possible: `relation_missing` for
   * callers of an issuer that is not listed and for values that cannot be ids; `malformed_request`
   * for a consistency token that is not valid for the caller's tenant.
   */
  queryOf(rule: RelationRule, request: RelationRequest): RelationQuery | Denial
  /** Returns the cached decision; undefined on a miss or without a cache. */
  cached(query: RelationQuery): RelationDecision | undefined
  /** Stores an answer in the cache. `startMs`: when the call started, by `now`. */
  store(query: RelationQuery, answer: RelationAnswer, startMs: number): void
  /** Returns the cached decision, or calls the policy decision point. Never throws `Unavailable`. */
  check(query: RelationQuery): Promise<RelationVerdict>
}

export interface RelationCheckerOptions {
  readonly decisionPoint: PolicyDecisionPoint
  readonly cache?: RelationCache | undefined
  /** Callers of other issuers have no relations. Undefined: every issuer is accepted. */
  readonly issuers?: ReadonlySet<string> | undefined
  /** Whether the store of `admit` was created with the same check. Default false. */
  readonly isIncludedInAdmission?: boolean
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Creates the checker of one isolate. Pass the same checker to `admit` and to `authorize`. */
export function createRelationChecker({
  decisionPoint,
  cache,
  issuers,
  isIncludedInAdmission = false,
  now,
}: RelationCheckerOptions): RelationChecker {
  const cached = (query: RelationQuery) => cache?.get(query, now())
  const store: RelationChecker['store'] = (query, answer, startMs) =>
    cache?.set(query, answer, startMs)

  return {
    isIncludedInAdmission,
    now,
    queryOf(rule, { principal, paramOf, consistencyToken }) {
      if (issuers?.has(principal.issuer) === false) return missing(rule)
      const query = rule.queryOf(principal, paramOf)
      if (query === undefined) return missing(rule)
      if (consistencyToken === undefined) return query
      const atLeast = decodeConsistency(consistencyToken, query.tenant, now())
      if (atLeast === undefined) return { code: 'malformed_request', check: 'consistency_token' }
      return { ...query, atLeast }
    },
    cached,
    store,
    async check(query) {
      const known = cached(query)
      if (known !== undefined) return known
      const startMs = now()
      try {
        const answer = await decisionPoint.check(query)
        store(query, answer, startMs)
        return answer.decision
      } catch (error) {
        if (error instanceof Unavailable) return error
        throw error
      }
    },
  }
}

/** Returns the denial for a decision; undefined if the decision allows. `unknown` is denied. */
export function createDenial(rule: RelationRule, decision: RelationDecision): Denial | undefined {
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
