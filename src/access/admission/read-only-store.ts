/** A store that reads what another store has, and writes nothing. */
import type { Unavailable } from '../../errors.ts'
import type { LimitRule, RateLimit } from './limit.ts'
import type { AdmissionStore } from './store.ts'

/**
 * Wraps a store so that a query counts no request, leases no units, takes no slot, uses no proof and
 * records no use of an API key. A limit reports the units that are left now, in the plan of the caller,
 * and whether the request would fit. Does NOT detect a proof that was used before. A limit of another
 * engine than `exact` cannot be read, and is reported as unused.
 */
export function readOnlyStore(store: AdmissionStore): AdmissionStore {
  return {
    keys: store.keys,
    read: (callers) => store.read(callers),

    async consult({ limits, proof: _, since: __, ...query }) {
      const facts = await store.consult({
        ...query,
        isReading: true,
        limits: limits.map(({ rule, key, owner, everywhere, planSources }) => ({
          rule: readingOf(rule),
          key,
          owner,
          everywhere,
          planSources,
        })),
      })
      return {
        ...facts,
        limits: limits.map(({ rule }, index) => ofRule(rule, facts.limits[index])),
      }
    },

    async resolve({ limits, ...query }) {
      const facts = await store.resolve({
        ...query,
        proof: undefined,
        recordsUse: false,
        isReading: true,
        limits: limits.map(({ rule, window }) => ({
          rule: readingOf(rule),
          // The other engine has no windows within a tenant.
          window: { ...window, isEverywhere: typeof rule.engine === 'object' },
        })),
      })
      const states = limits.map(({ rule }, index) => {
        const answer = facts.limits[index]
        return answer && { key: answer.key, state: ofRule(rule, answer.state) }
      })
      return { ...facts, limits: states }
    },
  }
}

/** Returns a rule that the script can read without a write. */
const readingOf = (rule: LimitRule): LimitRule => ({ ...rule, engine: 'exact', lease: undefined })

function ofRule<State extends RateLimit | Unavailable | undefined>(
  rule: LimitRule,
  state: State,
): State {
  return state !== undefined && 'rule' in state ? { ...state, rule } : state
}
