/** The relation between the caller and an object, for `admit`, `authorize` and `readmit`. */
import type { Context } from 'hono'
import type { Principal } from '../access/principal.ts'
import { createDenial, type RelationChecker } from '../access/relations/checker.ts'
import { CONSISTENCY_HEADER } from '../access/relations/consistency.ts'
import type { RelationAnswer, RelationQuery } from '../access/relations/decision-point.ts'
import { queryKey, type RelationRule } from '../access/relations/rule.ts'
import { reasonOf, reasonOfDenial } from '../audit/reason.ts'
import { Denied, Unavailable } from '../errors.ts'
import type { Denial } from '../problems/reasons.ts'
import { observe, type RelationVariables, type RequestRelation } from './context.ts'
import { receivedHeaders } from './request-headers.ts'

export interface RelationOptions {
  readonly rule: RelationRule
  /** The same for `admit`, `authorize` and `readmit`. */
  readonly checker: RelationChecker
  /** Returns a parameter that the rule names. Default: that of the path. */
  readonly paramOf?: (c: Context, name: string) => string | undefined
}

const RECEIVED_TOKEN = CONSISTENCY_HEADER.toLowerCase()

/**
 * Returns the relation of this request, resolved once. A stage that is registered for another path
 * (`routeIndex` differs) has other path parameters, and may require another object. Then the query
 * is resolved again, and the verdict is kept only if the query is the same.
 */
export function resolveRelation(
  c: Context,
  { rule, checker, paramOf = ofPath }: RelationOptions,
  principal: Principal,
): RequestRelation {
  const { routeIndex } = c.req
  const known = c.get('portcullis.relation') as RelationVariables['portcullis.relation'] | undefined
  if (known?.rule === rule && known.principal === principal && known.routeIndex === routeIndex)
    return known
  const query = checker.queryOf(rule, {
    principal,
    paramOf: (name) => paramOf(c, name),
    consistencyToken: receivedHeaders(c).get(RECEIVED_TOKEN),
  })
  const verdict = known !== undefined && isSame(known.query, query) ? known.verdict : undefined
  const relation: RequestRelation = { rule, principal, routeIndex, query, verdict }
  c.set('portcullis.relation', relation)
  return relation
}

const ofPath = (c: Context, name: string): string | undefined => c.req.param(name)

const isSame = (one: RelationQuery | Denial, other: RelationQuery | Denial): boolean =>
  !('code' in one) && !('code' in other) && queryKey(one) === queryKey(other)

/**
 * Returns the query that the call of `admit` must include, and removes any earlier verdict. Returns
 * undefined if the decision is cached (the verdict is set to it), if the request cannot form a
 * query, or if another policy decision point decides.
 */
export function includedQuery(relation: RequestRelation, checker: RelationChecker) {
  const { query } = relation
  relation.verdict = undefined
  if (!checker.isIncludedInAdmission || 'code' in query) return undefined
  relation.verdict = checker.cached(query)
  if (relation.verdict !== undefined) return undefined
  const startMs = checker.now()
  return {
    query,
    /** Caches the answer and sets the verdict. Undefined: the store did not answer the query. */
    answered(answer: RelationAnswer | Unavailable | undefined): void {
      if (answer === undefined || answer instanceof Unavailable) {
        relation.verdict = answer
        return
      }
      checker.store(query, answer, startMs)
      relation.verdict = answer.decision
    },
  }
}

/**
 * Throws `Denied` if the caller does not have the relation, and `Unavailable` if it cannot be
 * decided, unless the rule is in observe mode. Queries the checker only if `admit` did not.
 */
export async function requireRelation(
  c: Context,
  { query, verdict: known }: RequestRelation,
  { rule, checker }: RelationOptions,
): Promise<void> {
  if ('code' in query) return refuse(c, rule, query)
  const verdict = known ?? (await checker.check(query))
  if (verdict instanceof Unavailable) {
    if (rule.mode === 'enforce') throw verdict
    observe(c, reasonOf(verdict))
    return
  }
  const denial = createDenial(rule, verdict)
  if (denial !== undefined) refuse(c, rule, denial)
}

/** An unreadable consistency token is refused in either mode: it is the caller's mistake. */
function refuse(c: Context, { mode }: RelationRule, denial: Denial): void {
  if (mode === 'enforce' || denial.code === 'malformed_request') throw new Denied(denial)
  observe(c, reasonOfDenial(denial))
}
