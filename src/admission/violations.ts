/** Those who are refused too often, and the bans that this brings them. */
import { LRUCache } from 'lru-cache'
import type { WaitUntil } from '../tokens/principal.ts'
import type { Mode } from '../validators/mode.ts'
import type { BanDefinition } from './abuse-definition.ts'
import { isAnybodys } from './address-list.ts'
import { EXHAUSTED_LIMIT_MEMORY_MS } from './memory.ts'
import { createWriteBudget } from './write-budget.ts'

/** Who is counted: an address, or a subject of the issuer that vouches for it. */
export type Offender =
  | { readonly kind: 'address'; readonly value: string }
  | { readonly kind: 'subject'; readonly issuer: string; readonly value: string }

/** One refusal that counts. */
export interface Violation {
  /** Of a limit, a credential that was not good, or input that inspection refused. */
  readonly of: 'limit' | 'credential' | 'inspection'
  readonly by: Offender
  /** The address that it came from, whoever is counted. */
  readonly from: string
}

/** Port: counts where every isolate can see it, and bans where it was one too many. */
export interface ViolationCounter {
  /**
   * Counts one violation, unless a ban holds already. For how many more seconds one holds, 0: there
   * is none. A ban is in the list of bans, too: both or neither. Throws `Unavailable` if it may not
   * have been counted.
   */
  count(offender: Offender, rule: Required<BanDefinition>): Promise<number>
}

export interface Violations {
  /** Whether the bans are in force, or only told. */
  readonly mode: Mode
  /** Counts a violation behind the answer. */
  record(violation: Violation, waitUntil: WaitUntil): void
  /**
   * For how long an address is banned, as far as this isolate knows; undefined: it knows of no ban.
   * For those whose credentials are refused: knowledge that is older than 10 seconds is told, and
   * looked up behind the answer, where it counts as a violation should the ban have been lifted.
   */
  banSeconds(address: string, waitUntil: WaitUntil): number | undefined
  /** An address was refused for being banned, for so many more seconds. */
  learn(address: string, seconds: number): void
}

export interface ViolationsOptions {
  readonly rule: Required<BanDefinition>
  readonly counter: ViolationCounter
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Whether what comes from an address counts for nobody. Default: of none. */
  readonly isExempt?: (address: string) => boolean
}

/** At about 200 bytes an entry, 2 MB. */
const MAX_OFFENDERS = 10_000
/** Bans can wait, in a flood from many addresses. */
const MAX_WRITES_PER_SECOND = 100
/** An operator may lift a ban: it is looked up again after this. */
const BAN_MEMORY_MS = 10_000

interface KnownBan {
  readonly endsAtMs: number
  sureUntilMs: number
}

/**
 * Makes the count of an isolate. A limit that stays exhausted is one violation in 5 seconds: that
 * long an isolate answers from memory, and a flood must not become as many writes; nor may one from
 * many addresses, so at most 100 violations a second are counted. What is not counted bans nobody.
 *
 * The bans of addresses that the isolate comes across are kept, to tell them to those whose credentials
 * are refused anyway, and to write nothing of an address that has just been found to be banned. They
 * refuse nobody else: a ban that is lifted is lifted at once.
 */
export function createViolations({
  rule,
  counter,
  now,
  isExempt = () => false,
}: ViolationsOptions): Violations {
  const mayWrite = createWriteBudget(MAX_WRITES_PER_SECOND, now)
  const counted = new LRUCache<string, number>({ max: MAX_OFFENDERS })
  const banned = new LRUCache<string, KnownBan>({ max: MAX_OFFENDERS })

  function isCountedAlready(offender: Offender): boolean {
    const name = JSON.stringify(offender)
    const nowMs = now()
    if (nowMs < (counted.get(name) ?? 0)) return true
    counted.set(name, nowMs + EXHAUSTED_LIMIT_MEMORY_MS)
    return false
  }

  function learn(address: string, seconds: number): void {
    if (rule.mode === 'observe' || isExempt(address)) return
    const nowMs = now()
    banned.set(address, { endsAtMs: nowMs + seconds * 1000, sureUntilMs: nowMs + BAN_MEMORY_MS })
  }

  async function count(offender: Offender): Promise<void> {
    try {
      const seconds = await counter.count(offender, rule)
      if (offender.kind === 'subject') return
      if (seconds > 0) learn(offender.value, seconds)
      else banned.delete(offender.value)
    } catch {
      // Nobody waits for this who could be told, and the next violation counts again.
    }
  }

  return {
    mode: rule.mode,
    learn,

    record({ of, by, from }, waitUntil) {
      if (isExempt(from) || (by.kind === 'address' && isAnybodys(by.value))) return
      if (by.kind === 'address' && now() < (banned.get(by.value)?.sureUntilMs ?? 0)) return
      if (of === 'limit' && isCountedAlready(by)) return
      if (mayWrite()) waitUntil(count(by))
    },

    banSeconds(address, waitUntil) {
      const ban = banned.get(address)
      const nowMs = now()
      if (ban === undefined || nowMs >= ban.endsAtMs) return undefined
      if (nowMs >= ban.sureUntilMs && mayWrite()) {
        ban.sureUntilMs = nowMs + BAN_MEMORY_MS
        waitUntil(count({ kind: 'address', value: address }))
      }
      return Math.ceil((ban.endsAtMs - nowMs) / 1000)
    },
  }
}
