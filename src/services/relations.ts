/** What decides over relations, made of an environment. */
import type { Breakers } from '../breakers/registry.ts'
import type { Config } from '../config.ts'
import { Misconfigured } from '../errors.ts'
import type { Tally } from '../metrics/tally.ts'
import type { Policy } from '../policy.ts'
import type { PolicyRelations } from '../policy-relations.ts'
import { createRelationCache } from '../relations/cache.ts'
import { createRelationChecker, type RelationChecker } from '../relations/checker.ts'
import { parseTemplate } from '../relations/template.ts'
import type { AdminRelations } from '../routes/admin/stores.ts'
import {
  createRelationCheck,
  createUpstashRelationAuthority,
  type RelationCheck,
} from '../stores/upstash/relation-check.ts'
import { createRelationTuples } from '../stores/upstash/relation-tuples.ts'
import type { RedisRest } from '../stores/upstash/rest.ts'
import { createRelationAuthority } from './relation-authority.ts'

export interface RelationParts {
  readonly redis: RedisRest
  readonly watch: Breakers['watch']
  /** Of the decisions that an isolate remembers. */
  readonly tally: Tally
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/**
 * Each is undefined where the policy has no relations, and throws `Misconfigured` where it wants an
 * authority, or leaves open an issuer, that the environment does not tell.
 */
export interface RelationServices {
  /** The check that rides in other calls; undefined, too, where Redis does not decide. */
  checkOf(policy: Pick<Policy, 'relations'>): RelationCheck | undefined
  /** What `admit` and `authorize` ask. */
  checkerOf(policy: Pick<Policy, 'relations'>): RelationChecker | undefined
  /** What the operators' calls work with. */
  adminOf(policy: Pick<Policy, 'relations'>): AdminRelations | undefined
}

/** Who decides over the relations of a policy. */
interface Decider {
  /** Undefined where Redis does not decide. */
  readonly check: RelationCheck | undefined
  readonly authority: AdminRelations['authority']
}

/** Makes what decides; what is to be decided, and by whom, is the policy's to say. */
export function relationServices(
  config: Pick<Config, 'authorities' | 'issuers' | 'publicUrl'>,
  { redis, watch, tally, now }: RelationParts,
): RelationServices {
  const deciders = new WeakMap<PolicyRelations, Decider>()

  /** One of a policy: everything sends one script, and an external authority has one breaker. */
  function deciderOf(relations: PolicyRelations): Decider {
    const decider = deciders.get(relations) ?? newDecider(relations)
    deciders.set(relations, decider)
    return decider
  }

  function newDecider({ model, authority }: PolicyRelations): Decider {
    if (authority !== 'redis')
      return {
        check: undefined,
        authority: createRelationAuthority(config, { authority, watch, now }),
      }
    const check = createRelationCheck(model)
    return { check, authority: createUpstashRelationAuthority(redis, check) }
  }

  return {
    checkOf: ({ relations }) => relations && deciderOf(relations).check,

    checkerOf({ relations }) {
      if (relations === undefined) return undefined
      const { check, authority } = deciderOf(relations)
      const { maxStalenessMs, cacheEntries: maxEntries } = relations
      return createRelationChecker({
        authority,
        // Its room is taken when it is made.
        cache:
          maxStalenessMs > 0
            ? createRelationCache({ maxStalenessMs, maxEntries, tally })
            : undefined,
        issuers: issuersOf(relations, config),
        rides: check !== undefined,
        now,
      })
    },

    adminOf({ relations }) {
      if (relations === undefined) return undefined
      const { model } = relations
      const { check, authority } = deciderOf(relations)
      return {
        model,
        issuers: issuersOf(relations, config),
        tuples: check && createRelationTuples(redis, model.types.keys()),
        authority,
      }
    },
  }
}

/**
 * Whose callers can have relations. Two issuers may both have an alice, and a tenant of one name: what
 * is one namespace, somebody has to say. Of the gateway itself its operators decide. Nobody's whom the
 * gateway does not trust: what it has issued in exchange may outlive the trust.
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
