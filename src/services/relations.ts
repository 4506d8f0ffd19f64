/** What decides over relations, made of an environment. */
import type { Breakers } from '../breakers/registry.ts'
import type { Config } from '../config.ts'
import { Misconfigured } from '../errors.ts'
import type { Tally } from '../metrics/tally.ts'
import type { Policy } from '../policy.ts'
import type { PolicyRelations } from '../policy-relations.ts'
import type { RelationAuthority } from '../relations/authority.ts'
import { createRelationCache } from '../relations/cache.ts'
import { createRelationChecker, type RelationChecker } from '../relations/checker.ts'
import type { RelationModel } from '../relations/model.ts'
import { parseTemplate } from '../relations/template.ts'
import {
  createRelationCheck,
  createUpstashRelationAuthority,
  type RelationCheck,
} from '../stores/upstash/relation-check.ts'
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

export interface RelationServices {
  /** The check that rides in other calls; undefined where Redis does not decide. */
  checkOf(policy: Pick<Policy, 'relations'>): RelationCheck | undefined
  /** Who decides where Redis does not. Throws `Misconfigured` where nobody knows where that is. */
  externalOf(policy: Pick<Policy, 'relations'>): RelationAuthority | undefined
  /** Undefined where the policy has no relations. Throws `Misconfigured`. */
  checkerOf(policy: Pick<Policy, 'relations'>): RelationChecker | undefined
}

/** Makes what decides; what is to be decided, and by whom, is the policy's to say. */
export function relationServices(
  config: Pick<Config, 'authorities' | 'issuers' | 'publicUrl'>,
  { redis, watch, tally, now }: RelationParts,
): RelationServices {
  const checks = new WeakMap<RelationModel, RelationCheck>()
  const externals = new WeakMap<RelationModel, RelationAuthority>()

  /** One of a model, so that everything sends one script. */
  function checkOf({ relations }: Pick<Policy, 'relations'>): RelationCheck | undefined {
    if (relations?.authority !== 'redis') return undefined
    const check = checks.get(relations.model) ?? createRelationCheck(relations.model)
    checks.set(relations.model, check)
    return check
  }

  /** One of a policy, for it has breakers. */
  function externalOf({ relations }: Pick<Policy, 'relations'>): RelationAuthority | undefined {
    if (relations === undefined || relations.authority === 'redis') return undefined
    const { model, authority } = relations
    const external =
      externals.get(model) ?? createRelationAuthority(config, { authority, watch, now })
    externals.set(model, external)
    return external
  }

  return {
    checkOf,
    externalOf,
    checkerOf(policy) {
      const { relations } = policy
      if (relations === undefined) return undefined
      const check = checkOf(policy)
      const authority = check ? createUpstashRelationAuthority(redis, check) : externalOf(policy)
      if (authority === undefined) throw new Error('relations: nobody decides')
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
