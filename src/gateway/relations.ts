/** Composes the services that decide relations. */

import { Misconfigured } from '../errors.ts'
import type { Breakers } from '../isolate/breakers.ts'
import type { Tally } from '../isolate/tally.ts'
import type { PolicyRelations } from '../policy/relations.ts'
import type { RedisRest } from '../redis/rest.ts'
import { createRelationCache } from '../relations/cache.ts'
import { createRelationChecker, type RelationChecker } from '../relations/checker.ts'
import {
  createRedisDecisionPoint,
  createRelationCheck,
  type RelationCheck,
} from '../relations/redis/check.ts'
import { createRelationTuples } from '../relations/redis/tuples.ts'
import { parseTemplate } from '../relations/template.ts'
import type { AdminRelations } from '../routes/admin/stores.ts'
import type { Config } from '../validators/environment.ts'
import { createPolicyDecisionPoint } from './decision-point.ts'

export interface RelationParts {
  readonly redis: RedisRest
  readonly watch: Breakers['watch']
  /** Hits and misses of the cache of decisions. */
  readonly tally: Tally
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

export interface RelationServices {
  /**
   * The check that runs inside the admission call. Undefined if Redis does not decide relations.
   */
  readonly check: RelationCheck | undefined
  /** Decides relations for `admit` and `authorize`. */
  readonly checker: RelationChecker
  /** What the calls about relations use. */
  readonly admin: AdminRelations
}

/**
 * Creates the services for the relations of a policy. Throws `Misconfigured` if the policy names a
 * policy decision point that the environment does not configure, or does not determine the accepted
 * issuers.
 */
export function relationServices(
  relations: PolicyRelations,
  config: Pick<Config, 'decisionPoints' | 'issuers' | 'publicUrl'>,
  { redis, watch, tally, now }: RelationParts,
): RelationServices {
  const { model, maxStalenessMs, cacheEntries: maxEntries } = relations
  const { check, decisionPoint } = decisionPointOf(relations, config, { redis, watch, now })
  const checker = createRelationChecker({
    decisionPoint,
    // The cache allocates its memory when it is created.
    cache:
      maxStalenessMs > 0 ? createRelationCache({ maxStalenessMs, maxEntries, tally }) : undefined,
    issuers: issuersOf(relations, config),
    isIncludedInAdmission: check !== undefined,
    now,
  })
  const tuples = check && createRelationTuples(redis, model.types.keys())
  return { check, checker, admin: { model, tuples, decisionPoint } }
}

function decisionPointOf(
  { model, authority }: PolicyRelations,
  config: Pick<Config, 'decisionPoints'>,
  { redis, watch, now }: Omit<RelationParts, 'tally'>,
): Pick<AdminRelations, 'decisionPoint'> & Pick<RelationServices, 'check'> {
  if (authority !== 'redis')
    return {
      check: undefined,
      decisionPoint: createPolicyDecisionPoint(config, { kind: authority, watch, now }),
    }
  const check = createRelationCheck(model)
  return { check, decisionPoint: createRedisDecisionPoint(redis, check) }
}

/**
 * Returns the issuers of callers that can have relations. Two issuers may use the same subject and
 * the same tenant name, so the policy must name the issuers that share a namespace. The gateway's
 * own issuer is always included: its operators decide about its subjects. An issuer that is not
 * trusted is excluded, because tokens that the gateway exchanged may outlive the trust.
 */
function issuersOf(
  { issuers, subject }: PolicyRelations,
  config: Pick<Config, 'issuers' | 'publicUrl'>,
): ReadonlySet<string> {
  const { publicUrl } = config
  if (issuers !== undefined) return new Set([publicUrl, ...issuers])
  const template = parseTemplate(subject)
  const namesIssuer =
    typeof template === 'object' && template.placeholders.some(({ kind }) => kind === 'issuer')
  const others = config.issuers.flatMap(({ issuer }) => (issuer === publicUrl ? [] : [issuer]))
  if (namesIssuer || others.length <= 1) return new Set([publicUrl, ...others])
  throw new Misconfigured('The policy', [
    `relations.issuers: ${others.join(' and ')} are trusted; name those whose subjects and tenants ` +
      'are of one namespace, or put {issuer} into relations.subject',
  ])
}
