/** The policy of the scenarios about requests, with routes that demand a relation or do not. */

import model from '../../portcullis.model.json' with { type: 'json' }
import { relations } from '../../src/features/relations.ts'
import { definePolicy, type Policy } from '../../src/index.ts'
import { RELATION } from '../relations/graph.ts'
import { DECISION_MAX_STALENESS_MS, DECISIONS_KEPT, RELATED, UNRELATED } from './variants.ts'

/** More than any run asks for. */
const AMPLE = 1_000_000_000

/** Decisions are used again for so long, milliseconds; 0: each is made anew. */
const relatedRoutes = (maxStalenessMs: number) =>
  definePolicy({
    roles: {},
    limits: {
      ample: { limit: AMPLE, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
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

/** Adds two routes below `prefix` that differ in the relation alone. */
export function relatedPolicy(policy: Policy, prefix: string, maxStalenessMs = 0): Policy {
  const { relations: compiled, routes } = relatedRoutes(maxStalenessMs)
  const own = routes.map((route) => ({ ...route, path: prefix + route.path }))
  return { ...policy, relations: compiled, routes: [...policy.routes, ...own] }
}

/** The same, with decisions that are used again for as long as a policy may say. */
export const cachingPolicy = (policy: Policy, prefix: string): Policy =>
  relatedPolicy(policy, prefix, DECISION_MAX_STALENESS_MS)
