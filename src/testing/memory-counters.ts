/** The counters of abuse in memory: failed authentications, and violations with their bans. */
import type { FailureCounter } from '../access/abuse/authentication-failures.ts'
import { addressBanKey, subjectBanKey } from '../access/abuse/ban.ts'
import {
  LIMIT_VIOLATION_MS,
  type ViolationCount,
  type ViolationCounter,
} from '../access/abuse/violations.ts'
import { DEFAULT_KEYS } from '../redis/keys.ts'
import { createExpiringValues, type ExpiringValues } from './expiring-values.ts'

/** Creates a counter that decides as the one in Redis. `now` returns milliseconds since the epoch. */
export function createMemoryFailureCounter(now: () => number): FailureCounter {
  const counts = createExpiringValues<number>(now)
  return {
    async count(address, windowSeconds, signer) {
      const name = JSON.stringify([address, signer])
      const known = counts.get(name)
      const untilMs = known === undefined ? now() + windowSeconds * 1000 : counts.endOf(name)
      const count = (known ?? 0) + 1
      counts.set(name, count, untilMs)
      return { count, resetSeconds: Math.max(1, Math.ceil((untilMs - now()) / 1000)) }
    },
  }
}

interface Violations {
  readonly count: number
  readonly beganMs: number
  /** When the last violation of a limit began. */
  readonly limitAtMs: number
}

const NO_VIOLATION_MS = Number.NEGATIVE_INFINITY

/**
 * Creates a counter that decides as the one in Redis (decision 0021), and writes the bans to `bans`.
 * Does NOT list bans for operators. `now` returns milliseconds since the epoch.
 */
export function createMemoryViolationCounter(
  bans: ExpiringValues<number>,
  now: () => number,
): ViolationCounter {
  const violations = createExpiringValues<Violations>(now)
  const banCounts = createExpiringValues<number>(now)

  function bannedUntil(seconds: number): ViolationCount {
    const leftMs = seconds * 1000 - now()
    return { banSeconds: Math.ceil(leftMs / 1000), quietMs: Math.min(leftMs, LIMIT_VIOLATION_MS) }
  }

  return {
    async count(offender, of, rule) {
      const key =
        offender.kind === 'address'
          ? await addressBanKey(DEFAULT_KEYS, offender.value, rule.mode, rule.refuses)
          : await subjectBanKey(
              DEFAULT_KEYS,
              offender.issuer,
              offender.value,
              rule.mode,
              offender.tenant,
            )
      const nowMs = now()
      const present = bans.get(key)
      if (present !== undefined) return bannedUntil(present)
      if (of === undefined) return { banSeconds: 0, quietMs: 0 }

      const known = violations.get(key)
      const sinceMs = nowMs - (known?.limitAtMs ?? NO_VIOLATION_MS)
      if (of === 'limit' && sinceMs < LIMIT_VIOLATION_MS)
        return { banSeconds: 0, quietMs: LIMIT_VIOLATION_MS - sinceMs }
      const windowMs = rule.windowSeconds * 1000
      const isOver = known === undefined || nowMs - known.beganMs >= windowMs
      const count = isOver ? 1 : known.count + 1
      const beganMs = isOver ? nowMs : known.beganMs
      const limitAtMs = of === 'limit' ? nowMs : (known?.limitAtMs ?? NO_VIOLATION_MS)
      if (count < rule.violations) {
        const untilMs = Math.max(beganMs + windowMs, limitAtMs + LIMIT_VIOLATION_MS)
        violations.set(key, { count, beganMs, limitAtMs }, untilMs)
        return { banSeconds: 0, quietMs: of === 'limit' ? LIMIT_VIOLATION_MS : 0 }
      }
      violations.delete(key)
      const earlierBans = banCounts.get(key) ?? 0
      const seconds = Math.min(rule.seconds * 2 ** Math.min(earlierBans, 30), rule.maxSeconds)
      const untilSeconds = Math.floor(nowMs / 1000) + seconds
      banCounts.set(key, earlierBans + 1, (untilSeconds + rule.maxSeconds) * 1000)
      bans.set(key, untilSeconds, untilSeconds * 1000)
      return bannedUntil(untilSeconds)
    },
  }
}
