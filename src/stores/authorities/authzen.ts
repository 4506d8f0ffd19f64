/** A policy decision point, asked by the OpenID Authorization API 1.0 (AuthZEN). */
import * as z from 'zod'
import { Unavailable } from '../../errors.ts'
import type { RelationAuthority, RelationQuery } from '../../relations/authority.ts'
import { parseObject, parseSubject, WILDCARD } from '../../relations/tuple.ts'
import type { ContextHandling } from '../../validators/authority.ts'
import { ALLOWED, DENIED, entryOf } from './question.ts'
import {
  type AuthorityServer,
  type AuthorityServerOptions,
  createAuthorityServer,
} from './server.ts'

export interface AuthzenAuthorityOptions extends Omit<AuthorityServerOptions, 'url'> {
  /**
   * Base URLs by tenant, without trailing slashes; '' is for callers without one, `*` for everybody who
   * is not named.
   */
  readonly urls: ReadonlyMap<string, string>
  /** What becomes of a permission that comes with a `context`. Default `refuse`. */
  readonly context?: ContextHandling
}

/** Section 7.1.1 has it below the URL, where no metadata says otherwise. */
const PATH = '/access/v1/evaluation'
const ANY_TENANT = '*'

/** Section 5.5. Unknown members are no mistake (section 10.1.1). */
const evaluated = z.looseObject({
  decision: z.boolean(),
  context: z.record(z.string(), z.unknown()).optional(),
})

/**
 * Makes the authority. The relation is the action; types and ids of object and subject are sent
 * apart, ids as they are written in tuples: escaped, so that none can be taken for a wildcard, a
 * userset or another id by a server that puts them together again. The tenant is told as
 * `context.tenant`; a server that several tenants share must heed it.
 *
 * Denied unasked: tenants without a server, usersets and wildcards as subjects, and contextual tuples,
 * for which the API has no words. The API knows no consistency either, so a query with `atLeast`
 * is `Unavailable` (`stale`). A permission with anything in its `context` may be one on terms (the
 * specification lets the gateway reject it), so it is `Unavailable` unless `context` is `ignore`.
 * Answers have the version 0.
 */
export function createAuthzenAuthority({
  urls,
  context = 'refuse',
  ...options
}: AuthzenAuthorityOptions): RelationAuthority {
  const servers = new Map<string, AuthorityServer>()
  for (const url of urls.values()) {
    if (!servers.has(url)) servers.set(url, createAuthorityServer({ url, ...options }))
  }
  return {
    async check(query) {
      const url = entryOf(urls, query.tenant) ?? urls.get(ANY_TENANT)
      const server = url === undefined ? undefined : servers.get(url)
      const question = questionOf(query)
      if (server === undefined || question === undefined) return DENIED
      if ((query.atLeast ?? 0) > 0) throw new Unavailable('authority', 'stale')
      const reply = await server.ask(PATH, question, evaluated)
      if (reply.kind === 'refused') throw new Unavailable('authority', 'refused')
      const { answer } = reply
      if (!answer.decision) return DENIED
      if (context === 'refuse' && Object.keys(answer.context ?? {}).length > 0)
        throw new Unavailable('authority', 'refused')
      return ALLOWED
    },
  }
}

/** Undefined: the API has no words for it. */
function questionOf({ tenant, contextualTuples, ...query }: RelationQuery): object | undefined {
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
