/**
 * The relation between a caller and an object, as `admit` checks it and `authorize` requires it.
 */
import type { Context } from 'hono'
import { reasonOf, reasonOfDenial } from '../audit/reason.ts'
import { type Denial, Denied, Unavailable } from '../errors.ts'
import type { Principal } from '../identity/principal.ts'
import { denialOf, type RelationChecker, type RelationVerdict } from '../relations/checker.ts'
import { CONSISTENCY_HEADER } from '../relations/consistency.ts'
import type { RelationAnswer, RelationQuery } from '../relations/decision-point.ts'
import { queryKey, type RelationRule } from '../relations/rule.ts'
import type { RelationVariables } from './context.ts'
import { observe } from './observe.ts'
import { receivedHeaders } from './request-headers.ts'

/** The rule of a route, and the service that decides it. */
export interface RelationOptions {
  /** From `createRelationRule`, or a route of the policy. */
  readonly rule: RelationRule
  /** From `createRelationChecker`; the same for `admit` and `authorize`. */
  readonly checker: RelationChecker
}

/** Received names are in lower case. */
const RECEIVED_TOKEN = CONSISTENCY_HEADER.toLowerCase()

/** Returns the query for this request, or a denial if the request cannot form one. */
function relationQueryOf(
  c: Context,
  { rule, checker }: RelationOptions,
  principal: Principal,
): RelationQuery | Denial {
  return checker.queryOf(rule, {
    principal,
    paramOf: (name) => c.req.param(name),
    consistencyToken: receivedHeaders(c).get(RECEIVED_TOKEN),
  })
}

/** The relation query that the call of `admit` must include. */
export interface RelationAsk {
  readonly query: RelationQuery
  /** Caches the answer and sets `relation`. Undefined: there was no answer. */
  tell(answer: RelationAnswer | Unavailable | undefined): void
}

/**
 * Returns the query that `admit` must include in its call. Returns undefined in three cases: the
 * decision is cached, and `relation` is set to it; the request cannot form a query; another policy
 * decision point decides.
 */
export function relationToAsk(
  c: Context,
  options: RelationOptions,
  principal: Principal,
): RelationAsk | undefined {
  const { checker } = options
  if (!checker.rides) return undefined
  const query = relationQueryOf(c, options, principal)
  if ('code' in query) return undefined
  const known = checker.recall(query)
  const note = (verdict: RelationVerdict) => c.set('relation', { of: queryKey(query), verdict })
  if (known !== undefined) {
    note(known)
    return undefined
  }
  const askedMs = checker.now()
  return {
    query,
    tell(answer) {
      if (answer === undefined) return
      if (answer instanceof Unavailable) return note(answer)
      checker.remember(query, answer, askedMs)
      note(answer.decision)
    },
  }
}

/**
 * Returns if the caller has the relation, or the rule is in observe mode. Throws `Denied`, and
 * `Unavailable` if the relation cannot be decided. Makes a call only if `admit` has not checked the
 * relation.
 */
export async function demandRelation(
  c: Context,
  options: RelationOptions,
  principal: Principal,
): Promise<void> {
  const { rule, checker } = options
  // Build the query again: Hono gives each handler its own parameters, so `admit` may have checked
  // another object.
  const query = relationQueryOf(c, options, principal)
  if ('code' in query) return refuse(c, rule, query)
  const told = c.get('relation') as RelationVariables['relation'] | undefined
  const verdict = told?.of === queryKey(query) ? told.verdict : await checker.check(query)
  if (verdict instanceof Unavailable) {
    if (rule.mode === 'enforce') throw verdict
    observe(c, reasonOf(verdict))
    return
  }
  const denial = denialOf(rule, verdict)
  if (denial !== undefined) refuse(c, rule, denial)
}

/**
 * An unreadable consistency token is always refused, whatever the rule's mode: it is the caller's
 * mistake.
 */
function refuse(c: Context, { mode }: RelationRule, denial: Denial): void {
  if (mode === 'enforce' || denial.code === 'request_malformed') throw new Denied(denial)
  observe(c, reasonOfDenial(denial))
}
