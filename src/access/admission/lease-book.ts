/** The units that an isolate holds of all windows. No I/O, no clock. See docs/decisions/0037. */

import { Unavailable } from '../../errors.ts'
import { createLruMap } from '../../isolate/lru-map.ts'
import { LeaseAccount, type LeasedRule } from './lease-account.ts'
import type { LimitRequest, LimitRule, RateLimit } from './limit.ts'
import type { AdmissionFacts } from './store.ts'

/** About 7 MB at 1.7 KB each. Units of an evicted account are lost until they leave the window. */
const MAX_ACCOUNTS = 4_096

/** Units that were granted and returned; for metrics. */
export interface LeaseTally {
  granted: number
  returned: number
}

interface Entry {
  readonly account: LeaseAccount
  /** The last reported state, in which all leased units count as used. */
  state: RateLimit | undefined
}

const isLeased = (rule: LimitRule): rule is LimitRule & LeasedRule => rule.lease !== undefined

/** Creates an empty book. */
export function createLeaseBook(
  tally: LeaseTally = { granted: 0, returned: 0 },
  maxAccounts = MAX_ACCOUNTS,
) {
  const entries = createLruMap<string, Entry>({ max: maxAccounts })

  /** Undefined: the policy allows no lease. */
  function findEntry({ rule, key }: LimitRequest): Entry | undefined {
    if (!isLeased(rule)) return undefined
    let entry = entries.get(key)
    if (entry === undefined) {
      entry = { account: new LeaseAccount(rule), state: undefined }
      entries.set(key, entry)
    }
    return entry
  }

  return {
    /**
     * Spends the cost of a request from every limit, or from none. Returns the last reported
     * states. Undefined: the store must be called.
     */
    spend(limits: readonly LimitRequest[], nowMs: number): readonly RateLimit[] | undefined {
      const accounts: LeaseAccount[] = []
      const states: RateLimit[] = []
      for (const limit of limits) {
        const { account, state } = findEntry(limit) ?? {}
        if (account === undefined || state === undefined) return undefined
        if (account.held(nowMs) < (limit.rule.cost ?? 1)) return undefined
        accounts.push(account)
        states.push(state)
      }
      for (const account of accounts) {
        // False if the list contains the limit twice and the first spent its last units.
        if (!account.spend()) return undefined
        account.use(nowMs)
      }
      return states
    },

    /** Returns the limits with the units that a call for a request, sent now, should request. */
    withLeaseRequests(limits: readonly LimitRequest[], nowMs: number): readonly LimitRequest[] {
      return limits.map((limit) => {
        const account = findEntry(limit)?.account
        account?.use(nowMs)
        const leaseRequest = account?.request(nowMs)
        return leaseRequest === undefined ? limit : { ...limit, leaseRequest }
      })
    },

    /** Returns the limits that need a call after the response. The caller must make that call. */
    renewals(limits: readonly LimitRequest[], nowMs: number): readonly LimitRequest[] {
      let due = NONE
      for (const limit of limits) {
        const leaseRequest = findEntry(limit)?.account.renewal(nowMs)
        if (leaseRequest === undefined) continue
        tally.returned += leaseRequest.returned
        due = [...due, { ...limit, leaseRequest }]
      }
      return due
    },

    /** Applies the store's answer to a call. Undefined: the outcome is unknown. */
    settle(
      limits: readonly LimitRequest[],
      answers: AdmissionFacts['limits'] | undefined,
      sentMs: number,
    ): void {
      for (const [index, { rule, key, leaseRequest }] of limits.entries()) {
        const entry = rule.lease && entries.get(key)
        if (entry === undefined) continue
        const { account } = entry
        const answer = answers?.[index]
        const state = answer instanceof Unavailable ? undefined : answer
        if (leaseRequest !== undefined) account.settle(leaseRequest, state?.grant, sentMs)
        tally.granted += state?.grant?.units ?? 0
        if (state === undefined) continue
        // An operator changed the limit of the window.
        if (entry.state !== undefined && entry.state.limit !== state.limit) account.surrender()
        if (state.admitted) entry.state = state
        else account.refused(sentMs)
      }
    },
  }
}

const NONE: readonly LimitRequest[] = []
