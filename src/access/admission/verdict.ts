/** Turns the store's answer into a decision, and caches refusals in the isolate. */
import { Unavailable } from '../../errors.ts'
import { createLruMap } from '../../isolate/lru-map.ts'
import { isUntil } from '../../isolate/period.ts'
import { newTally, type Tally } from '../../isolate/tally.ts'
import type { RevokedBy } from '../../problems/checks.ts'
import type { Denial } from '../../problems/reasons.ts'
import { secondsUntil } from '../../problems/retry-after.ts'
import { findBan } from '../abuse/ban.ts'
import type { Principal } from '../principal.ts'
import type { RelationAnswer } from '../relations/decision-point.ts'
import { revokedBy } from '../revocation/revocation.ts'
import type { DecidingKeys } from './keys.ts'
import type { LimitRequest, RateLimit } from './limit.ts'
import type { AdmissionFacts, ProofUse } from './store.ts'

/** An operator may lift the revocation of a token, so it is checked again after this time. */
const REVOKED_TOKEN_MEMORY_MS = 10_000
/** An operator may reset a window or override its limit. */
const EXHAUSTED_LIMIT_MEMORY_MS = 5_000
/** 2 MB, at about 200 bytes per entry. */
const MAX_REFUSALS = 10_000

export interface AdmissionVerdict {
  /** Undefined: the request is admitted. */
  readonly denial: Denial | undefined
  readonly limits: readonly RateLimit[]
  /** Limits that could not be counted and admitted the request (`onUnavailable: 'allow'`). */
  readonly uncounted: readonly string[]
  /** What rules in observe mode would have refused, whether the request is admitted or not. */
  readonly observed: readonly Denial[]
  /** The answer to the relation query, if there was one. Admission does not refuse because of it. */
  readonly relation?: RelationAnswer | Unavailable | undefined
  /** If present, to be called after the response is sent. Never rejects. */
  readonly renewal?: (() => Promise<void>) | undefined
}

export const NOTHING_OBSERVED: readonly Denial[] = []

function refused(denial: Denial, limits: readonly RateLimit[] = []): AdmissionVerdict {
  return { denial, limits, uncounted: [], observed: NOTHING_OBSERVED }
}

interface Refusal<Reason> {
  readonly reason: Reason
  /** The caller of a reference that its record refuses. */
  readonly caller?: Principal | undefined
  /** Until when the refusal is valid without a call, in milliseconds since the epoch. */
  readonly untilMs: number
}

/** Hits and misses of the cached refusals. */
export interface RefusalTallies {
  readonly revoked: Tally
  readonly exhausted: Tally
}

type Refusals = ReturnType<typeof createRefusals>

/**
 * Creates the isolate's caches of refusals, which save a round trip for repeated requests.
 * Correctness does not depend on them: a missing entry costs one call.
 */
export function createRefusals(
  tallies: RefusalTallies = { revoked: newTally(), exhausted: newTally() },
  max = MAX_REFUSALS,
) {
  return {
    /** By `RevocationKeys.cacheKey`, or by the hash of a reference. */
    revoked: createLruMap<string, Refusal<RevokedBy>>({ max }),
    /** By `LimitRequest.key`. */
    exhausted: createLruMap<string, Refusal<RateLimit>>({ max }),
    /** By the storage key of the proof's use, with the end in milliseconds since the epoch. */
    usedProofs: createLruMap<string, number>({ max }),
    tallies,
  }
}

/** Returns the cached refusal of a revoked token or of a used proof. */
export function recallCredential(
  cacheKey: string | undefined,
  proof: ProofUse | undefined,
  { revoked, usedProofs, tallies }: Refusals,
  nowMs: number,
): AdmissionVerdict | undefined {
  const known = cacheKey === undefined ? undefined : revoked.get(cacheKey)
  if (known !== undefined && isUntil(known.untilMs, REVOKED_TOKEN_MEMORY_MS, nowMs)) {
    tallies.revoked.hits += 1
    return refused({ code: 'token_revoked', by: known.reason })
  }
  if (cacheKey !== undefined) tallies.revoked.misses += 1
  const usedUntilMs = proof === undefined ? undefined : usedProofs.get(proof.replayId)
  return usedUntilMs !== undefined && nowMs < usedUntilMs ? refused(REPLAYED) : undefined
}

/** Returns the cached refusal of the window that stays exhausted longest. */
export function recallLimits(
  limits: readonly Pick<LimitRequest, 'key'>[],
  { exhausted, tallies }: Refusals,
  nowMs: number,
): AdmissionVerdict | undefined {
  let latest: RateLimit | undefined
  for (const { key } of limits) {
    const known = exhausted.get(key)
    if (known === undefined || !isUntil(known.untilMs, EXHAUSTED_LIMIT_MEMORY_MS, nowMs)) {
      tallies.exhausted.misses += 1
      continue
    }
    tallies.exhausted.hits += 1
    if (latest === undefined || known.reason.resetMs > latest.resetMs) latest = known.reason
  }
  return latest && refused(rateLimited(latest, nowMs), [latest])
}

const REPLAYED: Denial = { code: 'invalid_dpop_proof', check: 'replay' }

/**
 * Refuses a request that is revoked, banned or replayed. Only the revocation of the token itself is
 * served from the cache for a time. A cutoff is cached as expired, so that the next request consults
 * the store before anything is counted.
 */
export function findRefusal(
  principal: Principal | null,
  { revocation, bans }: DecidingKeys,
  facts: Omit<AdmissionFacts, 'limits'>,
  { proof, refusals, nowMs }: { proof: ProofUse | undefined; refusals: Refusals; nowMs: number },
): AdmissionVerdict | undefined {
  const by = principal === null ? undefined : revokedBy(principal, revocation, facts)
  if (by !== undefined) {
    rememberRevoked(refusals, revocation.cacheKey, { reason: by }, nowMs)
    return refused({ code: 'token_revoked', by })
  }
  const ban = findBan(bans, facts.bannedUntilSeconds, nowMs)
  // This request used the proof, unless an earlier one did. Refuse a replay without a call.
  if (proof !== undefined)
    refusals.usedProofs.set(proof.replayId, nowMs + proof.replayTtlSeconds * 1000)
  if (ban !== undefined) return refused(ban)
  return facts.proofUsed ? refused(REPLAYED) : undefined
}

/** Caches a revocation, by `RevocationKeys.cacheKey` or by the hash of a reference. */
export function rememberRevoked(
  { revoked }: Refusals,
  cacheKey: string,
  refusal: Pick<Refusal<RevokedBy>, 'reason' | 'caller'>,
  nowMs: number,
): void {
  const sureMs = refusal.reason === 'token' ? REVOKED_TOKEN_MEMORY_MS : 0
  revoked.set(cacheKey, { ...refusal, untilMs: nowMs + sureMs })
}

const DAY_MS = 86_400_000

function rateLimited({ rule, resetMs, plan }: RateLimit, nowMs: number): Denial {
  const retryAfterSeconds = secondsUntil(resetMs, nowMs)
  const known = { code: 'rate_limited', limit: rule.name, retryAfterSeconds } as const
  const denial: Denial = plan === undefined ? known : { ...known, plan }
  const kind = rule.meter?.kind
  if (kind !== 'day' && kind !== 'month') return denial
  // The period ends at midnight by the clock of Redis, which may differ from this one by seconds.
  return { ...denial, untilMs: Math.round(resetMs / DAY_MS) * DAY_MS }
}

/**
 * Refuses if a limit is exhausted. Of several, it names the one that stays exhausted longest.
 * Throws `Unavailable` for a limit that could not be counted and does not admit uncounted requests.
 */
export function weigh(
  requests: readonly LimitRequest[],
  answers: readonly (RateLimit | Unavailable | undefined)[],
  { exhausted }: Refusals,
  nowMs: number,
): AdmissionVerdict {
  const limits: RateLimit[] = []
  const uncounted: string[] = []
  let observed = NOTHING_OBSERVED
  let refusal: RateLimit | undefined
  for (const [index, request] of requests.entries()) {
    const answer = answers[index]
    if (answer === undefined) throw new Unavailable('redis', 'malformed')
    if (answer instanceof Unavailable) {
      if (!passesUncounted(request)) throw answer
      uncounted.push(request.rule.name)
      continue
    }
    if (answer.limit === 0) continue
    limits.push(answer)
    if (answer.admitted) continue
    if (request.rule.mode === 'observe') {
      observed = [...observed, rateLimited(answer, nowMs)]
      continue
    }
    const untilMs = Math.min(answer.resetMs, nowMs + EXHAUSTED_LIMIT_MEMORY_MS)
    exhausted.set(request.key, { reason: answer, untilMs })
    if (refusal === undefined || answer.resetMs > refusal.resetMs) refusal = answer
  }
  const denial = refusal && rateLimited(refusal, nowMs)
  return { denial, limits, uncounted, observed }
}

/** Reports whether a limit that cannot be counted admits the request. */
export function passesUncounted({ rule }: Pick<LimitRequest, 'rule'>): boolean {
  return rule.onUnavailable === 'allow' || rule.mode === 'observe'
}
