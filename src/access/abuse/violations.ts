/** Counts the violations of an address or subject, which lead to automatic bans. */

import { isSharedAddress } from '../../http/address-list.ts'
import type { WaitUntil } from '../../isolate/after-response.ts'
import { createLruMap } from '../../isolate/lru-map.ts'
import { isUntil } from '../../isolate/period.ts'
import { createWriteBudget } from '../../isolate/write-budget.ts'
import { secondsUntil } from '../../problems/retry-after.ts'
import type { Mode } from '../../validators/mode.ts'
import type { BanScope, Member } from './ban.ts'
import type { BanDefinition } from './definition.ts'

/** The party that violations count towards. */
export type Offender =
  | { readonly kind: 'address'; readonly value: string }
  | {
      readonly kind: 'subject'
      readonly issuer: string
      /** The tenant of the caller, if it has one: violations elsewhere do not count. */
      readonly tenant?: string | undefined
      readonly value: string
    }

/** Returns the subject as the keys of bans name it. */
export const memberOf = ({
  issuer,
  tenant,
  value,
}: Extract<Offender, { kind: 'subject' }>): Member => ({ issuer, tenant, subject: value })

/** A refusal that counts towards an automatic ban. */
export interface Violation {
  readonly of: 'limit' | 'credential' | 'inspection'
  readonly by: Offender
  /** The address that sent the request, even if the violation counts towards a subject. */
  readonly from: string
}

/**
 * Length of a violation that starts with a refusal by an exhausted limit. Further refusals of the
 * same offender within it belong to the same violation, for any limit and in any isolate.
 */
export const LIMIT_VIOLATION_MS = 5_000

export interface ViolationCount {
  /** The remaining time of the ban in seconds; 0 for no ban. */
  readonly banSeconds: number
  /** For how many milliseconds refusals by limits count no further violation. */
  readonly quietMs: number
}

/** Port: a counter that all isolates share. It bans an offender with too many violations. */
export interface ViolationCounter {
  /**
   * Counts one refusal by the rule of decision 0021, unless a ban is in force already. If `of` is
   * undefined, it counts nothing and only reads the ban. A new ban is also stored in the list of
   * bans: both happen, or neither. Throws `Unavailable` if the refusal may not have been counted.
   */
  count(
    offender: Offender,
    of: Violation['of'] | undefined,
    rule: Required<BanDefinition>,
  ): Promise<ViolationCount>
}

export interface Violations {
  readonly mode: Mode
  /** What a ban of an address refuses. */
  readonly refuses: BanScope
  /** Counts a violation after the response has been sent. */
  record(violation: Violation, waitUntil: WaitUntil): void
  /**
   * Returns the remaining time of an address's ban, in seconds, from the isolate's cache; undefined:
   * none. For requests with a refused credential. A cached ban older than 10 seconds is still
   * returned, and checked in the counter after the response. If it has been lifted by then, `of`
   * counts as a violation.
   */
  banSeconds(
    address: string,
    of: Violation['of'] | undefined,
    waitUntil: WaitUntil,
  ): number | undefined
  /** Caches the ban of an address that was refused for the remaining `seconds`. */
  learn(address: string, seconds: number): void
}

export interface ViolationsOptions {
  readonly rule: Required<BanDefinition>
  readonly counter: ViolationCounter
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Reports whether requests from an address count no violations. Default: none is exempt. */
  readonly isExempt?: (address: string) => boolean
  /** In the isolate's memory. Default 10,000. */
  readonly maxOffenders?: number | undefined
}

/** At about 200 bytes an entry, 2 MB. */
const MAX_OFFENDERS = 10_000
/** In a flood from many addresses, a ban may come later. */
const MAX_WRITES_PER_SECOND = 100
/** An operator may lift a ban, so it is checked again after this time. */
const BAN_MEMORY_MS = 10_000

interface KnownBan {
  readonly endsAtMs: number
  sureUntilMs: number
}

const isSure = (ban: KnownBan | undefined, nowMs: number): boolean =>
  isUntil(ban?.sureUntilMs, BAN_MEMORY_MS, nowMs)

/**
 * Creates the isolate's part of the count. Only the counter decides which refusals are violations,
 * so the result does not depend on how requests are spread over isolates. The isolate only skips
 * what the counter would not count. These are refusals by limits within a counted violation, and
 * refusals of an address that has just been found banned.
 *
 * An isolate writes at most 100 times a second. Refusals beyond that are not counted, so a flood
 * from many offenders leads to bans later, never sooner. If a limit violation could not be written,
 * the next refusal starts it instead.
 *
 * The isolate also caches the bans of addresses, to report them to callers with refused
 * credentials. The cache refuses no other request: a lifted ban ends at once.
 */
export function createViolations({
  rule,
  counter,
  now,
  isExempt = () => false,
  maxOffenders: max = MAX_OFFENDERS,
}: ViolationsOptions): Violations {
  const mayWrite = createWriteBudget(MAX_WRITES_PER_SECOND, now)
  /** Until when refusals by limits are not written, by offender. */
  const quietUntilMs = createLruMap<string, number>({ max })
  const banned = createLruMap<string, KnownBan>({ max })

  function learn(address: string, seconds: number): void {
    if (rule.mode === 'observe' || isExempt(address)) return
    const nowMs = now()
    const endsAtMs = nowMs + seconds * 1000
    banned.set(address, { endsAtMs, sureUntilMs: Math.min(endsAtMs, nowMs + BAN_MEMORY_MS) })
  }

  async function count(offender: Offender, of: Violation['of'] | undefined): Promise<void> {
    const name = of === 'limit' ? JSON.stringify(offender) : undefined
    const sentMs = now()
    // Set before the reply: the reply comes soon, or never if the platform ends the request.
    if (name !== undefined) quietUntilMs.set(name, sentMs + LIMIT_VIOLATION_MS)
    try {
      const { banSeconds, quietMs } = await counter.count(offender, of, rule)
      // Counted from the moment of sending. The period then ends too early rather than too late.
      if (name !== undefined) quietUntilMs.set(name, sentMs + quietMs)
      if (offender.kind === 'subject') return
      if (banSeconds > 0) learn(offender.value, banSeconds)
      else banned.delete(offender.value)
    } catch {
      // No response waits for this call. The next refusal is written again.
      if (name !== undefined) quietUntilMs.delete(name)
    }
  }

  return {
    mode: rule.mode,
    refuses: rule.refuses,
    learn,

    record({ of, by, from }, waitUntil) {
      if (isExempt(from) || (by.kind === 'address' && isSharedAddress(by.value))) return
      if (by.kind === 'address' && isSure(banned.get(by.value), now())) return
      const quietMs = of === 'limit' ? quietUntilMs.get(JSON.stringify(by)) : undefined
      if (isUntil(quietMs, LIMIT_VIOLATION_MS, now())) return
      if (mayWrite()) waitUntil(count(by, of))
    },

    banSeconds(address, of, waitUntil) {
      const ban = banned.get(address)
      const nowMs = now()
      if (ban === undefined || nowMs >= ban.endsAtMs) return undefined
      if (!isSure(ban, nowMs) && mayWrite()) {
        ban.sureUntilMs = nowMs + BAN_MEMORY_MS
        waitUntil(count({ kind: 'address', value: address }, of))
      }
      return secondsUntil(ban.endsAtMs, nowMs)
    },
  }
}
