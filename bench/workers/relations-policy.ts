/** Adds routes with and without a required relation to a policy. */
import model from '../../portcullis.model.json' with { type: 'json' }
import { relations } from '../../src/features/relations/index.ts'
import { definePolicy, type Policy } from '../../src/index.ts'
import { RELATION } from '../relations/graph.ts'
import { ROOMY_LIMIT } from './policy.ts'
import { DECISION_MAX_STALENESS_MS, DECISIONS_KEPT, RELATED, UNRELATED } from './variants.ts'

/** `maxStalenessMs` is the maximum age of a cached decision; 0: no decision is cached. */
const relatedRoutes = (maxStalenessMs: number) =>
  definePolicy({
    roles: {},
    limits: {
      ample: { limit: ROOMY_LIMIT, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
    },
    relations: relations({ model, maxStalenessMs, cacheEntries: DECISIONS_KEPT }),
    routes: [
      { method: 'GET', path: `${UNRELATED}/:id`, permission: 'orders:read', limits: ['ample'] },
      {
        method: 'GET',
        path: `${RELATED}/:id`,
        permission: 'orders:read',
        limits: ['ample'],
        relation: { object: 'order:{params.id}', relation: RELATION },
      },
    ],
  })

/** Adds two routes below `prefix` that differ only in the relation. */
export function relatedPolicy(policy: Policy, prefix: string, maxStalenessMs = 0): Policy {
  const { relations: compiled, routes } = relatedRoutes(maxStalenessMs)
  const own = routes.map((route) => ({ ...route, path: prefix + route.path }))
  return { ...policy, relations: compiled, routes: [...policy.routes, ...own] }
}

/** Like `relatedPolicy`, with decisions that are cached for the maximum time. */
export const cachingPolicy = (policy: Policy, prefix: string): Policy =>
  relatedPolicy(policy, prefix, DECISION_MAX_STALENESS_MS)
