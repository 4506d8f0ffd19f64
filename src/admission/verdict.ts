/** From what a store said of a request to the decision, and what the isolate keeps of refusals. */
import { type Denial, type RevokedBy, Unavailable } from '../errors.ts'
import { newTally, type Tally } from '../metrics/tally.ts'
import type { RelationAnswer } from '../relations/authority.ts'
import type { Principal } from '../tokens/principal.ts'
import { type BanKey, banOf } from './ban.ts'
import type { DecidingKeys } from './keys.ts'
import type { LimitRequest, RateLimit } from './limit.ts'
import {
  createRefusalMemory,
  EXHAUSTED_LIMIT_MEMORY_MS,
  REVOKED_TOKEN_MEMORY_MS,
  type RefusalMemory,
} from './memory.ts'
import { revokedBy } from './revocation.ts'
import type { AdmissionFacts, ProofUse } from './store.ts'

/** What was decided: admitted where `denial` is undefined. */
export interface AdmissionVerdict {
  readonly denial: Denial | undefined
  /** The limits that were consulted. */
  readonly limits: readonly RateLimit[]
  /** Limits that could not be counted and let the request through (`onUnavailable: 'allow'`). */
  readonly uncounted: readonly string[]
  /** What rules in observe mode would have refused, whether the request is admitted or not. */
  readonly observed: readonly Denial[]
  /** What was told of the relation that was asked for; it refuses nobody here. */
  readonly relation?: RelationAnswer | Unavailable | undefined
  /** To be called behind the answer, where it is there; never rejects. */
  readonly renewal?: (() => Promise<void>) | undefined
}

export const NOTHING_OBSERVED: readonly Denial[] = []

export function refused(denial: Denial, limits: readonly RateLimit[] = []): AdmissionVerdict {
  return { denial, limits, uncounted: [], observed: NOTHING_OBSERVED }
}

/** The same verdict, and the ban among `bans` that would have refused, were bans in force. */
export function withObservedBan(
  verdict: AdmissionVerdict,
  bans: readonly BanKey[],
  untilSeconds: readonly (number | undefined)[],
  nowMs: number,
): AdmissionVerdict {
  const ban = banOf(bans, untilSeconds, nowMs)
  return ban === undefined ? verdict : { ...verdict, observed: [ban, ...verdict.observed] }
}

/** The memories of an isolate. */
export interface Refusals {
  /** By `RevocationKeys.memory`. */
  readonly revoked: RefusalMemory<RevokedBy>
  /** By `LimitRequest.key`. */
  readonly exhausted: RefusalMemory<RateLimit>
  /** By the storage key of their use. */
  readonly usedProofs: RefusalMemory<true>
  readonly tallies: RefusalTallies
}

/** How often a refusal was told out of memory. */
export interface RefusalTallies {
  readonly revoked: Tally
  readonly exhausted: Tally
}

export function createRefusals(
  maxEntries: number | undefined,
  tallies: RefusalTallies = { revoked: newTally(), exhausted: newTally() },
): Refusals {
  return {
    revoked: createRefusalMemory(maxEntries),
    exhausted: createRefusalMemory(maxEntries),
    usedProofs: createRefusalMemory(maxEntries),
    tallies,
  }
}

/** The refusal of a token that this isolate has just seen to be revoked, or of a used proof. */
export function recallCredential(
  memory: string | undefined,
  proof: ProofUse | undefined,
  { revoked, usedProofs, tallies }: Refusals,
  nowMs: number,
): AdmissionVerdict | undefined {
  const known = memory === undefined ? undefined : revoked.recall(memory)
  if (known !== undefined && nowMs < known.untilMs) {
    tallies.revoked.hits += 1
    return refused({ code: 'token_revoked', by: known.reason })
  }
  if (memory !== undefined) tallies.revoked.misses += 1
  const used = proof === undefined ? undefined : usedProofs.recall(proof.replayKey)
  return used !== undefined && nowMs < used.untilMs ? refused(REPLAYED) : undefined
}

/** The refusal of a window that this isolate has just seen to be spent. */
export function recallLimits(
  limits: readonly Pick<LimitRequest, 'key'>[],
  { exhausted, tallies }: Refusals,
  nowMs: number,
): AdmissionVerdict | undefined {
  for (const { key } of limits) {
    const known = exhausted.recall(key)
    if (known !== undefined && nowMs < known.untilMs) {
      tallies.exhausted.hits += 1
      return refused(rateLimited(known.reason, nowMs), [known.reason])
    }
    tallies.exhausted.misses += 1
  }
  return undefined
}

const REPLAYED: Denial = { code: 'dpop_rejected', check: 'replay' }

/**
 * Refuses what is revoked, cut off, banned or replayed; undefined where nothing of that holds. Only
 * a token's own revocation is sure for a moment. A cut-off is remembered so that the store is asked
 * about it before anything is counted.
 */
export function refusalOf(
  principal: Principal | null,
  { revocation, bans }: DecidingKeys,
  facts: Omit<AdmissionFacts, 'limits'>,
  { proof, refusals, nowMs }: { proof: ProofUse | undefined; refusals: Refusals; nowMs: number },
): AdmissionVerdict | undefined {
  const by = principal === null ? undefined : revokedBy(principal, revocation, facts)
  if (by !== undefined) {
    const sureMs = by === 'token' ? REVOKED_TOKEN_MEMORY_MS : 0
    refusals.revoked.remember(revocation.memory, by, nowMs + sureMs)
    return refused({ code: 'token_revoked', by })
  }
  const ban = banOf(bans, facts.bannedUntilSeconds, nowMs)
  // Used by this request, if not before: whoever sends it again is refused without a call.
  if (proof !== undefined)
    refusals.usedProofs.remember(proof.replayKey, true, nowMs + proof.replayTtlSeconds * 1000)
  if (ban !== undefined) return refused(ban)
  return facts.proofUsed ? refused(REPLAYED) : undefined
}

function rateLimited({ rule, resetMs }: RateLimit, nowMs: number): Denial {
  const retryAfterSeconds = Math.max(1, Math.ceil((resetMs - nowMs) / 1000))
  return { code: 'rate_limited', limit: rule.name, retryAfterSeconds }
}

/**
 * Refuses when any limit is exhausted; of several, for the one that stays so longest. Limits in
 * observe mode refuse nobody and are not remembered: only refusals are answered from memory.
 */
export function weigh(
  requests: readonly LimitRequest[],
  answers: readonly (RateLimit | Unavailable | undefined)[],
  { exhausted }: Refusals,
  nowMs: number,
): AdmissionVerdict {
  const limits: RateLimit[] = []
  const uncounted: string[] = []
  let observed: Denial[] | undefined
  let refusal: RateLimit | undefined
  for (const [index, request] of requests.entries()) {
    const answer = answers[index]
    if (answer === undefined) throw new Unavailable('redis', 'malformed')
    if (answer instanceof Unavailable) {
      if (!passesUncounted(request)) throw answer
      uncounted.push(request.rule.name)
      continue
    }
    limits.push(answer)
    if (answer.admitted) continue
    if (request.rule.mode === 'observe') {
      observed = [...(observed ?? []), rateLimited(answer, nowMs)]
      continue
    }
    const untilMs = Math.min(answer.resetMs, nowMs + EXHAUSTED_LIMIT_MEMORY_MS)
    exhausted.remember(request.key, answer, untilMs)
    if (refusal === undefined || answer.resetMs > refusal.resetMs) refusal = answer
  }
  const denial = refusal && rateLimited(refusal, nowMs)
  return { denial, limits, uncounted, observed: observed ?? NOTHING_OBSERVED }
}

export function passesUncounted({ rule }: Pick<LimitRequest, 'rule'>): boolean {
  return rule.onUnavailable === 'allow' || rule.mode === 'observe'
}
