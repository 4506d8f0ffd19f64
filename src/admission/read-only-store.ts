/** A store that reads what another store knows, and takes nothing. */
import type { Unavailable } from '../errors.ts'
import type { LimitRule, RateLimit } from './limit.ts'
import type { AdmissionStore } from './store.ts'

/**
 * Wraps a store so that a query counts no request, leases no units, uses no proof and records no use
 * of an API key. A limit reports the units that are left now, and whether the request would fit. Does NOT detect a proof that was used
 * before. A limit of another engine than `exact` cannot be read, and is reported as unused.
 */
export function readOnlyStore(store: AdmissionStore): AdmissionStore {
  return {
    keys: store.keys,

    async consult({ limits, proof: _, since: __, ...query }) {
      const facts = await store.consult({
        ...query,
        limits: limits.map(({ rule, key }) => ({ rule: readingOf(rule), key })),
      })
      const states = limits.map(({ rule }, index) => asIfCharged(rule, facts.limits[index]))
      return { ...facts, limits: states }
    },

    async resolve({ limits, ...query }) {
      const facts = await store.resolve({
        ...query,
        proof: undefined,
        recordsUse: false,
        limits: limits.map(({ rule, window }) => ({ rule: readingOf(rule), window })),
      })
      const states = limits.map(({ rule }, index) => {
        const answer = facts.limits[index]
        const state = asIfCharged(rule, answer?.state)
        return answer && state && { key: answer.key, state }
      })
      return { ...facts, limits: states }
    },
  }
}

/** Returns a rule that takes no units: then the script reads the window and does not write it. */
const readingOf = (rule: LimitRule): LimitRule => ({
  ...rule,
  cost: 0,
  engine: 'exact',
  lease: undefined,
})

function asIfCharged(
  rule: LimitRule,
  state: RateLimit | Unavailable | undefined,
): RateLimit | Unavailable | undefined {
  if (state === undefined || !('remaining' in state)) return state
  return { ...state, rule, admitted: state.remaining >= (rule.cost ?? 1) }
}
