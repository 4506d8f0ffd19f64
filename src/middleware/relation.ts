/** The relation between a caller and an object, as `admit` asks for it and `authorize` demands it. */
import type { Context } from 'hono'
import { reasonOf, reasonOfDenial } from '../audit/reason.ts'
import type { RelationVariables } from '../context.ts'
import { type Denial, Denied, Unavailable } from '../errors.ts'
import type { RelationAnswer, RelationQuery } from '../relations/authority.ts'
import { denialOf, type RelationChecker, type RelationVerdict } from '../relations/checker.ts'
import { CONSISTENCY_HEADER } from '../relations/consistency.ts'
import { queryKey, type RelationRule } from '../relations/rule.ts'
import { receivedHeaders } from '../request-headers.ts'
import type { Principal } from '../tokens/principal.ts'
import { observe } from './observe.ts'

/** What a route demands, and who tells whether it holds. */
export interface RelationOptions {
  /** From `createRelationRule`, or a route of the policy. */
  readonly rule: RelationRule
  /** From `createRelationChecker`; the same for `admit` and `authorize`. */
  readonly checker: RelationChecker
}

/** Received names are in lower case. */
const RECEIVED_TOKEN = CONSISTENCY_HEADER.toLowerCase()

/** What is to be asked of this request; a denial where nothing can be. */
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

/** What is left for the call of `admit` to ask. */
export interface RelationAsk {
  readonly query: RelationQuery
  /** Keeps what was answered, and sets `relation`; undefined: nothing was. */
  tell(answer: RelationAnswer | Unavailable | undefined): void
}

/**
 * What `admit` has to ask; undefined where this isolate knows, which `relation` is set to then, where
 * nothing can be asked, or where somebody else decides.
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
 * Returns where the caller has the relation, or the rule only observes. Throws `Denied`, and
 * `Unavailable` where nobody can tell. Asks only what `admit` has not.
 */
export async function demandRelation(
  c: Context,
  options: RelationOptions,
  principal: Principal,
): Promise<void> {
  const { rule, checker } = options
  // Anew: Hono tells each handler parameters of its own, so `admit` may have asked about another object.
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

/** A token that cannot be read is the caller's mistake, whatever the rule's mode. */
function refuse(c: Context, { mode }: RelationRule, denial: Denial): void {
  if (mode === 'enforce' || denial.code === 'request_malformed') throw new Denied(denial)
  observe(c, reasonOfDenial(denial))
}
