/**
 * The admission decision: revoked, banned or over a limit. One call to the store answers all of it.
 */

import { banOf, observedBan } from '../abuse/ban.ts'
import { Unavailable } from '../errors.ts'
import type { Principal } from '../identity/principal.ts'
import type { RelationQuery } from '../relations/decision-point.ts'
import type { References } from '../tokens/references.ts'
import { createKeyCache, type RequestKeys } from './keys.ts'
import type { LimitRequest } from './limit.ts'
import { createLocalAdmission, type LocalTally } from './local.ts'
import {
  admitReference,
  type ReferenceRequest,
  type ReferenceVerdict,
} from './reference-admission.ts'
import type { AdmissionFacts, AdmissionStore, ProofUse } from './store.ts'
import {
  type AdmissionVerdict,
  createRefusals,
  NOTHING_OBSERVED,
  passesUncounted,
  type RefusalTallies,
  recallCredential,
  recallLimits,
  refusalOf,
  weigh,
} from './verdict.ts'

export type { AdmissionVerdict } from './verdict.ts'

/**
 * A request that waits longer than this before it reaches the origin is admitted again.
 * Milliseconds.
 */
export const ADMITTED_FOR_MS = 1_000

export interface AdmissionRequest {
  readonly principal: Principal | null
  /** Normalised client address. */
  readonly address: string
  readonly limits: readonly LimitRequest[]
  /** A proof of possession, which may be used once. */
  readonly proof?: ProofUse | undefined
  /** A relation to check in the same call. The call is then always made. */
  readonly relation?: RelationQuery | undefined
  /** Whether to check bans of an anonymous caller that has no limits. Default false. */
  readonly asksBans?: boolean
  /** Whether to call the store even if the isolate could decide locally. Default false. */
  readonly strict?: boolean
}

export interface Admission {
  /**
   * Decides about a request. Throws `Unavailable` if the store fails and the policy does not admit
   * the request uncounted.
   */
  admit(request: AdmissionRequest): Promise<AdmissionVerdict>
  /** Resolves a reference that this isolate has not cached, and decides about it. */
  admitReference(request: ReferenceRequest): Promise<ReferenceVerdict>
}

export interface AdmissionOptions {
  readonly store: AdmissionStore
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** The cache of references that `authenticate` uses. Default: `admitReference` throws. */
  readonly references?: References | undefined
  /** Entries of each cache of refusals in the isolate. Default 10,000. */
  readonly memoryEntries?: number
  /** Counts hits and misses of the cached refusals. */
  readonly tallies?: RefusalTallies
  /**
   * The maximum age of the view of revocations, cutoffs and bans, in milliseconds. Default 0: every
   * request calls the store, and no units are leased.
   */
  readonly maxStalenessMs?: number
  /** Whether the store also reads bans in observe mode, for the audit event. Default false. */
  readonly observesBans?: boolean
  /** Counts what was admitted without a call. */
  readonly local?: LocalTally | undefined
}

const ASKED_NOTHING: AdmissionVerdict = {
  denial: undefined,
  limits: [],
  uncounted: [],
  observed: NOTHING_OBSERVED,
}

/**
 * Creates the admission decision. Revocation always fails closed. A limit fails according to its
 * `onUnavailable`. Bans shed load; they do not protect public resources. So an anonymous request
 * without limits makes no call, unless `asksBans` is set. If its limits admit uncounted requests in
 * an outage, a banned address is admitted as well.
 *
 * A token that this isolate has refused before is checked before it is counted, so that it uses no
 * budget. This costs a second call once after the refusal is lifted.
 *
 * With `maxStalenessMs` above 0, a caller that this isolate found clean is admitted without a call.
 * All limits of the request must have leased units for it (`lease`). The store is always called for
 * a request with a proof of possession or a relation, a request with `strict`, and a token that was
 * refused here before.
 */
export function createAdmission({
  store,
  now,
  references,
  memoryEntries,
  tallies,
  maxStalenessMs = 0,
  observesBans = false,
  local: tally,
}: AdmissionOptions): Admission {
  const refusals = createRefusals(memoryEntries, tallies)
  const keysOf = createKeyCache()
  const local =
    maxStalenessMs > 0 ? createLocalAdmission({ store, now, maxStalenessMs, tally }) : undefined

  /** Checks a token that was refused here before. Returns undefined if it is no longer refused. */
  async function look(
    principal: Principal,
    keys: RequestKeys,
  ): Promise<AdmissionVerdict | undefined> {
    const nowMs = now()
    const facts = await store.consult({ ...keys, limits: [], nowMs })
    const still = refusalOf(principal, keys, facts, { proof: undefined, refusals, nowMs })
    if (still === undefined) refusals.revoked.forget(keys.revocation.memory)
    return still
  }

  return {
    async admit({ principal, address, limits, proof, relation, asksBans, strict }) {
      if (principal === null && limits.length === 0 && asksBans !== true) return ASKED_NOTHING
      const derived = keysOf(principal, address)
      const keys = derived instanceof Promise ? await derived : derived
      const { memory } = keys.revocation
      const remembered = recallCredential(memory, proof, refusals, now())
      if (remembered !== undefined) return remembered
      if (principal !== null && refusals.revoked.recall(memory) !== undefined) {
        const still = await look(principal, keys)
        if (still !== undefined) return still
      }
      const spent = recallLimits(limits, refusals, now())
      if (spent !== undefined) return spent
      const mustAsk = strict === true || proof !== undefined || relation !== undefined
      const known = mustAsk ? undefined : local?.admit(keys.parties, limits)
      if (known !== undefined)
        return { ...ASKED_NOTHING, limits: known, renewal: local?.renewal(limits) }

      const watched = observesBans ? keys.bans.map(observedBan) : undefined
      const { revocation, bans } = keys
      // Read before the call, so that the store and this function judge bans by the same time.
      const nowMs = now()
      const asking = local?.asking(limits)
      const query = {
        revocation,
        bans,
        observedBans: watched,
        limits: asking?.limits ?? limits,
        proof,
        relation,
        since: asking?.since,
        nowMs,
      }
      let facts: AdmissionFacts
      try {
        facts = await store.consult(query)
      } catch (error) {
        if (asking !== undefined) local?.answered(asking, undefined)
        if (principal !== null || !(error instanceof Unavailable) || !limits.every(passesUncounted))
          throw error
        return { ...ASKED_NOTHING, uncounted: limits.map(({ rule }) => rule.name) }
      }
      const mark = asking && local?.answered(asking, facts)
      const refusal = refusalOf(principal, keys, facts, { proof, refusals, nowMs })
      const held = watched && banOf(watched, facts.observedUntilSeconds, nowMs)
      const isClean = refusal === undefined && held === undefined
      for (const party of keys.parties) party.cleanAt = isClean ? mark : undefined
      const verdict = refusal ?? weigh(limits, facts.limits, refusals, now())
      const all =
        held === undefined ? verdict : { ...verdict, observed: [held, ...verdict.observed] }
      if (verdict.denial !== undefined || (local === undefined && relation === undefined))
        return all
      return { ...all, relation: facts.relation, renewal: local?.renewal(limits) }
    },

    admitReference(request) {
      if (references === undefined)
        throw new Error('admit: createAdmission() needs the `references` of authenticate()')
      return admitReference(request, {
        store,
        now,
        references,
        refusals,
        keysOf,
        observesBans,
      })
    },
  }
}
