/**
 * The units that an isolate holds of all windows. Pure: no I/O, no clock. See docs/decisions/0037.
 */
import { LRUCache } from 'lru-cache'
import type { AccountOptions, LeaseAccount, LeaseTerms } from './lease.ts'
import { createLeaseAccount } from './lease-account.ts'
import type { LimitRequest, LimitRule, RateLimit } from './limit.ts'

/**
 * Accounts in the isolate: 7 MB at 1.7 KB each. Units of an evicted account are lost until they
 * leave the window.
 */
const MAX_ACCOUNTS = 4_096

/** Units that were granted and returned; for metrics. */
export interface LeaseTally {
  granted: number
  returned: number
}

export interface LeaseBook {
  /**
   * Spends the cost of a request from every limit, or from none. Returns the last reported state of
   * each limit, in which all leased units count as used. Undefined: the store must be called.
   */
  spend(limits: readonly LimitRequest[], nowMs: number): readonly RateLimit[] | undefined
  /**
   * Returns the same limits, with the units that a call for a request, sent now, should request.
   */
  withLeaseRequests(limits: readonly LimitRequest[], nowMs: number): readonly LimitRequest[]
  /** Returns the limits that need a call after the response. The caller must make that call. */
  renewals(limits: readonly LimitRequest[], nowMs: number): readonly LimitRequest[]
  /**
   * Applies the store's answer to a call. An undefined answer or state means that the outcome is
   * unknown.
   */
  settle(
    limits: readonly LimitRequest[],
    answers: readonly unknown[] | undefined,
    sentMs: number,
  ): void
}

interface Entry {
  readonly account: LeaseAccount
  state: RateLimit | undefined
}

/** Creates an empty book. */
export function createLeaseBook(
  tally: LeaseTally = { granted: 0, returned: 0 },
  maxAccounts = MAX_ACCOUNTS,
): LeaseBook {
  const entries = new LRUCache<string, Entry>({ max: maxAccounts })
  const options = new WeakMap<LimitRule, AccountOptions>()

  /** Undefined: the policy allows no lease. */
  function entryOf({ rule, key }: LimitRequest): Entry | undefined {
    if (rule.lease === undefined) return undefined
    let entry = entries.get(key)
    if (entry === undefined) {
      entry = { account: createLeaseAccount(optionsOf(rule, rule.lease)), state: undefined }
      entries.set(key, entry)
    }
    return entry
  }

  /** Returns the same object for all windows of a rule. */
  function optionsOf(rule: LimitRule, lease: LeaseTerms): AccountOptions {
    const { cost = 1, windowSeconds } = rule
    const known = options.get(rule) ?? { ...lease, cost, windowMs: windowSeconds * 1000 }
    options.set(rule, known)
    return known
  }

  return {
    spend(limits, nowMs) {
      const states: RateLimit[] = []
      for (const limit of limits) {
        const entry = entryOf(limit)
        if (entry === undefined) return undefined
        const { account, state } = entry
        if (state === undefined || account.held(nowMs) < (limit.rule.cost ?? 1)) return undefined
        states.push(state)
      }
      for (const limit of limits) {
        const account = entryOf(limit)?.account
        // False if the list contains the limit twice and the first spent its last units.
        if (account?.spend() !== true) return undefined
        account.use(nowMs)
      }
      return states
    },

    withLeaseRequests(limits, nowMs) {
      return limits.map((limit) => {
        const account = entryOf(limit)?.account
        account?.use(nowMs)
        const leaseRequest = account?.request(nowMs)
        return leaseRequest === undefined ? limit : { ...limit, leaseRequest }
      })
    },

    renewals(limits, nowMs) {
      let due = NONE
      for (const limit of limits) {
        const leaseRequest = entryOf(limit)?.account.renewal(nowMs)
        if (leaseRequest === undefined) continue
        tally.returned += leaseRequest.returned
        due = [...due, { ...limit, leaseRequest }]
      }
      return due
    },

    settle(limits, answers, sentMs) {
      for (const [index, { rule, key, leaseRequest }] of limits.entries()) {
        const entry = rule.lease && entries.get(key)
        if (entry === undefined) continue
        const answer = answers?.[index]
        const state = isState(answer) ? answer : undefined
        const { grant, ...known } = state ?? {}
        if (leaseRequest !== undefined) entry.account.settle(leaseRequest, grant, sentMs)
        tally.granted += grant?.units ?? 0
        if (state === undefined) continue
        // An operator changed the limit of the window.
        if (entry.state !== undefined && entry.state.limit !== state.limit)
          entry.account.surrender()
        if (state.admitted) entry.state = known as RateLimit
        else entry.account.refused(sentMs)
      }
    },
  }
}

const NONE: readonly LimitRequest[] = []

const isState = (answer: unknown): answer is RateLimit =>
  typeof answer === 'object' && answer !== null && 'admitted' in answer
