/** The one decision of `admit`: revoked, cut off, banned, or over a limit? One call answers all. */
import { type Denial, type RevokedBy, Unavailable } from '../errors.ts'
import type { Principal } from '../tokens/principal.ts'
import { type BanKey, banOf } from './ban.ts'
import { createKeyCache } from './keys.ts'
import type { LimitRequest, RateLimit } from './limit.ts'
import {
  CUT_OFF_MEMORY_MS,
  createRefusalMemory,
  REVOKED_TOKEN_MEMORY_MS,
  type RefusalMemory,
} from './memory.ts'
import { type RevocationFacts, type RevocationKeys, revokedBy } from './revocation.ts'

/** Everything that one request asks of the store. */
export interface AdmissionQuery {
  /** No keys at all for an anonymous caller. */
  readonly revocation: RevocationKeys
  readonly bans: readonly BanKey[]
  readonly limits: readonly LimitRequest[]
}

/** The store's answer, in the order of the query. */
export interface AdmissionFacts extends RevocationFacts {
  /** Seconds since the epoch until which each ban holds; undefined: none. */
  readonly bannedUntilSeconds: readonly (number | undefined)[]
  /** A window that could not be counted while the rest could is `Unavailable` by itself. */
  readonly limits: readonly (RateLimit | Unavailable)[]
}

/**
 * Port: answers a query in ONE round trip and counts the request in every limit. Throws
 * `Unavailable` whenever it cannot tell; an absent or odd reply is never a "no".
 */
export interface AdmissionStore {
  consult(query: AdmissionQuery): Promise<AdmissionFacts>
}

export interface AdmissionRequest {
  readonly principal: Principal | null
  /** Normalised client address. */
  readonly address: string
  readonly limits: readonly LimitRequest[]
}

/** What was decided: admitted where `denial` is undefined. */
export interface AdmissionVerdict {
  readonly denial: Denial | undefined
  /** The limits that were consulted. */
  readonly limits: readonly RateLimit[]
  /** Limits that could not be counted and let the request through (`onUnavailable: 'allow'`). */
  readonly uncounted: readonly string[]
}

export interface Admission {
  /** Throws `Unavailable` where nobody can tell and the policy does not let it through. */
  admit(request: AdmissionRequest): Promise<AdmissionVerdict>
}

export interface AdmissionOptions {
  readonly store: AdmissionStore
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Entries of each of the isolate's memories. Default 10,000. */
  readonly memoryEntries?: number
}

const ASKED_NOTHING: AdmissionVerdict = { denial: undefined, limits: [], uncounted: [] }

/**
 * Makes the decision out of a store and a clock. Revocation fails closed always; a limit fails as
 * its `onUnavailable` says. Bans are there to shed load, not to keep anyone out of what is public:
 * where an anonymous request has no limits nothing is asked at all, and where its limits may pass
 * uncounted in an outage, so may a banned address.
 */
export function createAdmission({ store, now, memoryEntries }: AdmissionOptions): Admission {
  const refusals: Refusals = {
    revoked: createRefusalMemory(memoryEntries),
    exhausted: createRefusalMemory(memoryEntries),
  }
  const keysOf = createKeyCache()

  return {
    async admit({ principal, address, limits }) {
      if (principal === null && limits.length === 0) return ASKED_NOTHING
      const known = keysOf(principal, address)
      const keys = known instanceof Promise ? await known : known
      const remembered = recall(keys.revocation, limits, refusals, now())
      if (remembered !== undefined) return remembered

      let facts: AdmissionFacts
      try {
        facts = await store.consult({ ...keys, limits })
      } catch (error) {
        if (principal !== null || !(error instanceof Unavailable) || !limits.every(passesUncounted))
          throw error
        return { ...ASKED_NOTHING, uncounted: limits.map(({ rule }) => rule.name) }
      }

      const nowMs = now()
      const by = principal === null ? undefined : revokedBy(principal, keys.revocation, facts)
      if (by !== undefined) {
        const forMs = by === 'token' ? REVOKED_TOKEN_MEMORY_MS : CUT_OFF_MEMORY_MS
        refusals.revoked.remember(keys.revocation.memory, { by }, nowMs + forMs)
        return refused({ code: 'token_revoked', by })
      }
      const ban = banOf(keys.bans, facts.bannedUntilSeconds, nowMs)
      return ban === undefined ? weigh(limits, facts.limits, refusals, nowMs) : refused(ban)
    },
  }
}

interface Refusals {
  readonly revoked: RefusalMemory<{ readonly by: RevokedBy }>
  readonly exhausted: RefusalMemory<RateLimit>
}

function refused(denial: Denial, limits: readonly RateLimit[] = []): AdmissionVerdict {
  return { denial, limits, uncounted: [] }
}

function passesUncounted({ rule }: LimitRequest): boolean {
  return rule.onUnavailable === 'allow'
}

/** A refusal that this isolate has seen before and that still holds. */
function recall(
  revocation: RevocationKeys,
  limits: readonly LimitRequest[],
  { revoked, exhausted }: Refusals,
  nowMs: number,
): AdmissionVerdict | undefined {
  const known = revoked.recall(revocation.memory, nowMs)
  if (known !== undefined) return refused({ code: 'token_revoked', by: known.by })
  for (const { key } of limits) {
    const limit = exhausted.recall(key, nowMs)
    if (limit !== undefined) return refused(rateLimited(limit, nowMs), [limit])
  }
  return undefined
}

function rateLimited({ rule, resetMs }: RateLimit, nowMs: number): Denial {
  const retryAfterSeconds = Math.max(1, Math.ceil((resetMs - nowMs) / 1000))
  return { code: 'rate_limited', limit: rule.name, retryAfterSeconds }
}

/** Refuses when any limit is exhausted; of several, for the one that stays so longest. */
function weigh(
  requests: readonly LimitRequest[],
  answers: readonly (RateLimit | Unavailable)[],
  { exhausted }: Refusals,
  nowMs: number,
): AdmissionVerdict {
  const limits: RateLimit[] = []
  const uncounted: string[] = []
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
    exhausted.remember(request.key, answer, answer.resetMs)
    if (refusal === undefined || answer.resetMs > refusal.resetMs) refusal = answer
  }
  return { denial: refusal && rateLimited(refusal, nowMs), limits, uncounted }
}
