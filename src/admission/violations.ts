/** Those who are refused too often, and the bans that this brings them. */
import { LRUCache } from 'lru-cache'
import type { BanList } from '../operators/ban.ts'
import type { WaitUntil } from '../tokens/principal.ts'
import type { BanDefinition } from './abuse-definition.ts'
import { createAddressList } from './address-list.ts'
import { EXHAUSTED_LIMIT_MEMORY_MS } from './memory.ts'
import { createWriteBudget } from './write-budget.ts'

/** Who is counted: an address, or a subject of the issuer that vouches for it. */
export type Offender =
  | { readonly kind: 'address'; readonly value: string }
  | { readonly kind: 'subject'; readonly issuer: string; readonly value: string }

/** What a violation was: of a limit, or a credential that was not good. */
export type Violation = 'limit' | 'credential'

/** Port: counts where every isolate can see it. */
export interface ViolationCounter {
  /**
   * Counts one violation. For how many seconds it earns a ban; 0: for none. Throws `Unavailable` if
   * it may not have been counted.
   */
  count(offender: Offender, rule: Required<BanDefinition>): Promise<number>
}

export interface Violations {
  /** Counts a violation behind the answer, and bans where it was one too many. */
  record(offender: Offender, violation: Violation, waitUntil: WaitUntil): void
}

export interface ViolationsOptions {
  readonly rule: Required<BanDefinition>
  readonly counter: ViolationCounter
  /** Where operators find, and lift, the bans. */
  readonly bans: Pick<BanList, 'create'>
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Whose bans these are, in the list of bans. */
export const AUTOMATIC_BANS_CREATOR = 'portcullis'
/** The bucket of all whose address is not known: a ban of it would be one of everybody. */
const NOBODY = 'unknown'
/** At about 200 bytes an entry, 2 MB. */
const MAX_OFFENDERS = 10_000
/** Bans can wait, in a flood from many addresses. */
const MAX_WRITES_PER_SECOND = 100

/**
 * Makes the count of an isolate. A limit that stays exhausted is one violation in 5 seconds: that
 * long an isolate answers from memory, and a flood must not become as many writes; nor may one from
 * many addresses, so at most 100 violations a second are counted. What is not counted bans nobody.
 */
export function createViolations({ rule, counter, bans, now }: ViolationsOptions): Violations {
  const isExempt = createAddressList(rule.never)
  const mayWrite = createWriteBudget(MAX_WRITES_PER_SECOND, now)
  const counted = new LRUCache<string, number>({ max: MAX_OFFENDERS })

  function isCountedAlready(offender: Offender): boolean {
    const name = JSON.stringify(offender)
    const nowMs = now()
    if (nowMs < (counted.get(name) ?? 0)) return true
    counted.set(name, nowMs + EXHAUSTED_LIMIT_MEMORY_MS)
    return false
  }

  async function count(offender: Offender): Promise<void> {
    try {
      const seconds = await counter.count(offender, rule)
      if (seconds === 0) return
      const issuer = offender.kind === 'subject' ? offender.issuer : undefined
      await bans.create({
        kind: offender.kind,
        value: offender.value,
        issuer,
        issuers: issuer === undefined ? [] : [issuer],
        seconds,
        reason: `${rule.violations} violations in ${rule.windowSeconds} s`,
        createdBy: AUTOMATIC_BANS_CREATOR,
      })
    } catch {
      // Nobody waits for this who could be told, and the next violation counts again.
    }
  }

  return {
    record(offender, violation, waitUntil) {
      if (offender.kind === 'address' && (offender.value === NOBODY || isExempt(offender.value)))
        return
      if (violation === 'limit' && isCountedAlready(offender)) return
      if (mayWrite()) waitUntil(count(offender))
    },
  }
}
