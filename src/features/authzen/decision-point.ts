/** Relation checks at a policy decision point with the OpenID Authorization API 1.0 (AuthZEN). */

import * as z from 'zod/mini'
import type { PolicyDecisionPoint, RelationQuery } from '../../access/relations/decision-point.ts'
import {
  ALLOWED,
  createDecisionPointServer,
  DENIED,
  type DecisionPointServer,
  type DecisionPointServerOptions,
  findEntry,
} from '../../access/relations/decision-points/server.ts'
import { parseObject, parseSubject, WILDCARD } from '../../access/relations/tuple.ts'
import { Unavailable } from '../../errors.ts'
import type { ContextHandling } from '../../validators/decision-points.ts'

export interface AuthzenDecisionPointOptions extends Omit<DecisionPointServerOptions, 'url'> {
  /**
   * Base URLs by tenant, without trailing slashes. '' is for callers without a tenant, `*` for all
   * tenants and callers without an entry.
   */
  readonly urls: ReadonlyMap<string, string>
  /** How to treat an allowed decision that has a `context`. Default `refuse`. */
  readonly context?: ContextHandling
}

/** Path below the URL: the default of section 7.1.1 when no metadata names another path. */
const PATH = '/access/v1/evaluation'
const ANY_TENANT = '*'

/** The response of section 5.5. Unknown members are accepted (section 10.1.1). */
const evaluationResponse = z.looseObject({
  decision: z.boolean(),
  context: z.optional(z.record(z.string(), z.unknown())),
})

/**
 * Creates the policy decision point. The relation is sent as the action. Types and ids of object
 * and subject are sent in separate members. Ids stay escaped as in tuples. So a server that joins
 * type and id cannot read one as a wildcard, a userset or another id. The tenant is sent as
 * `context.tenant`; a server that several tenants share must apply it.
 *
 * Denies without a call: tenants without a server, usersets and wildcards as subjects, and
 * contextual tuples, which the API cannot express. The API does not support consistency either, so
 * a query with `atLeast` is `Unavailable` (`stale`).
 *
 * An allowed decision with a non-empty `context` may be conditional, and the specification lets the
 * gateway reject it. It is therefore `Unavailable`, unless the option `context` is `ignore`.
 * Answers have the version 0.
 */
export function createAuthzenDecisionPoint({
  urls,
  context = 'refuse',
  ...options
}: AuthzenDecisionPointOptions): PolicyDecisionPoint {
  const servers = new Map<string, DecisionPointServer>()
  for (const url of new Set(urls.values()))
    servers.set(url, createDecisionPointServer({ url, ...options }))
  return {
    async check(query) {
      const url = findEntry(urls, query.tenant) ?? urls.get(ANY_TENANT)
      const server = url === undefined ? undefined : servers.get(url)
      const request = createRequest(query)
      if (server === undefined || request === undefined) return DENIED
      if ((query.atLeast ?? 0) > 0) throw new Unavailable('authority', 'stale')
      const reply = await server.post(PATH, request, evaluationResponse)
      if (reply.kind === 'refused') throw new Unavailable('authority', 'refused')
      const { answer } = reply
      if (!answer.decision) return DENIED
      if (context === 'refuse' && Object.keys(answer.context ?? {}).length > 0)
        throw new Unavailable('authority', 'refused')
      return ALLOWED
    },
  }
}

/** Builds the request body; undefined if the API cannot express the query. */
function createRequest({ tenant, contextualTuples, ...query }: RelationQuery): object | undefined {
  const subject = parseSubject(query.subject)
  const resource = parseObject(query.object)
  if (subject === undefined || resource === undefined || contextualTuples.length > 0)
    return undefined
  if (subject.relation !== undefined || subject.id === WILDCARD) return undefined
  return {
    subject: { type: subject.type, id: subject.id },
    resource,
    action: { name: query.relation },
    ...(tenant !== null && { context: { tenant } }),
  }
}
