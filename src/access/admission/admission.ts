/** The admission decision: revoked, banned or over a limit. One call to the store answers all. */

import { Unavailable } from '../../errors.ts'
import { isWithin } from '../../isolate/period.ts'
import type { Denial } from '../../problems/reasons.ts'
import { findBan, observedBan } from '../abuse/ban.ts'
import type { Principal } from '../principal.ts'
import type { RelationQuery } from '../relations/decision-point.ts'
import type { References } from '../tokens/references.ts'
import { createKeyCache, type RequestKeys } from './keys.ts'
import type { LimitRequest } from './limit.ts'
import { createLocalAdmission, type LocalTally } from './local-admission.ts'
import {
  createReferenceResolver,
  factsFor,
  type ReferenceRequest,
  withKey,
} from './reference-resolver.ts'
import type { AdmissionFacts, AdmissionStore, CallerStore, ProofUse } from './store.ts'
import {
  type AdmissionVerdict,
  createRefusals,
  findRefusal,
  NOTHING_OBSERVED,
  passesUncounted,
  type RefusalTallies,
  recallCredential,
  recallLimits,
  rememberRevoked,
  weigh,
} from './verdict.ts'

export type { AdmissionVerdict } from './verdict.ts'

/** A request that waits longer than this before it reaches the origin is admitted again. */
export const ADMITTED_FOR_MS = 1_000

/** Reports whether a request that was admitted at `sinceMs` must be admitted again. */
export const isHeldUp = (sinceMs: number): boolean =>
  !isWithin(sinceMs, ADMITTED_FOR_MS, Date.now())

export interface AdmissionRequest {
  readonly principal: Principal | null
  /** Normalized client address. */
  readonly address: string
  readonly limits: readonly LimitRequest[]
  readonly proof?: ProofUse | undefined
  /** A relation to check in the same call, which is then always made. */
  readonly relation?: RelationQuery | undefined
  /** Checks bans of an anonymous caller that has no limits. Default false. */
  readonly checksBans?: boolean
  /**
   * The anonymous caller sends a credential that only the origin verifies, so a ban of the address's
   * credentials refuses it, without limits as well. Default false.
   */
  readonly isUnverified?: boolean
  /**
   * A limit of the route says `onUnavailable: 'allow'`, so that a credential which only the origin
   * verifies passes while its bans cannot be checked. Default: whether one of `limits` says so.
   */
  readonly passesOutage?: boolean | undefined
  /** Calls the store even if the isolate could decide locally. Default false. */
  readonly strict?: boolean
}

export interface Admission {
  /** Throws `Unavailable` if the store fails and the policy does not admit the request uncounted. */
  admit(request: AdmissionRequest): Promise<AdmissionVerdict>
  /**
   * Resolves a reference that this isolate has not cached, and decides about it. Caches the principal
   * of a valid reference, revoked or not. Throws `Unavailable` as `admit` does.
   */
  admitReference(request: ReferenceRequest): Promise<ReferenceVerdict>
  /**
   * Returns, for each caller, the revocation or ban that refuses it now. `maxStalenessMs` has no
   * effect. All callers share one round trip, or two if the feed has changes that concern them.
   * Counts nothing. Throws `Unavailable` if the store fails.
   */
  recheck(callers: readonly AdmittedCaller[]): Promise<readonly (Denial | undefined)[]>
}

/** A caller that was admitted before. */
export interface AdmittedCaller {
  readonly principal: Principal
  /** Normalized client address. */
  readonly address: string
}

/** Reports whether the policy admits the request deliberately while the store is unavailable. */
const saysAllow = ({ rule }: Pick<LimitRequest, 'rule'>): boolean => rule.onUnavailable === 'allow'

export interface ReferenceVerdict extends AdmissionVerdict {
  /** Undefined if the reference is not valid, or if a cached refusal made the call unnecessary. */
  readonly principal: Principal | undefined
  /** The caller of an API key that has ended, for the audit event. Never admitted. */
  readonly refused?: Principal | undefined
}

const resolvesReferences = (store: AdmissionOptions['store']): store is AdmissionStore =>
  store.resolve !== undefined

export interface AdmissionOptions {
  /** Resolves references too, if there are `references`. */
  readonly store: CallerStore & Partial<AdmissionStore>
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** The cache of references that `authenticate` uses. Default: `admitReference` throws. */
  readonly references?: References | undefined
  readonly tallies?: RefusalTallies | undefined
  /**
   * The maximum age of the view of revocations, cutoffs and bans, in milliseconds. Default 0: every
   * request calls the store, and no units are leased.
   */
  readonly maxStalenessMs?: number
  /** Whether the store also reads bans in observe mode, for the audit event. Default false. */
  readonly observesBans?: boolean
  /** Entries of each cache. Default 10,000 refusals of a kind, and the keys of 1,000 addresses. */
  readonly cacheSize?: number | undefined
  readonly local?: LocalTally | undefined
}

const ADMITTED: AdmissionVerdict = {
  denial: undefined,
  limits: [],
  uncounted: [],
  observed: NOTHING_OBSERVED,
}

/** Creates the admission decision of {@link createCallerAdmission}, about references too, if there are any. */
export function createAdmission(options: AdmissionOptions): Admission {
  return createCallerAdmission(options, createReferenceResolver)
}

/**
 * Creates the admission decision about callers without references. Revocation always fails closed. A limit fails according to its
 * `onUnavailable`. Bans shed load; they do not protect public resources. So an anonymous request
 * without limits makes no call, unless `checksBans` is set. If its limits admit uncounted requests in
 * an outage, a banned address is admitted as well. A caller with a credential that only the origin
 * verifies is admitted in an outage only if a limit of its route says `onUnavailable: 'allow'`.
 *
 * A token that this isolate has refused before is checked before it is counted, so that it uses no
 * budget. This costs a second call once after the refusal is lifted.
 *
 * With `maxStalenessMs` above 0, a caller that this isolate found clean is admitted without a call.
 * All limits of the request must have leased units for it (`lease`). The store is always called for
 * a request with a proof of possession or a relation, a request with `strict`, and a token that was
 * refused here before.
 */
export function createCallerAdmission(
  {
    store,
    now,
    references,
    tallies,
    maxStalenessMs = 0,
    observesBans = false,
    cacheSize,
    local: tally,
  }: AdmissionOptions,
  createResolver?: typeof createReferenceResolver,
): Admission {
  const refusals = createRefusals(tallies, cacheSize)
  const keysOf = createKeyCache(store.keys, cacheSize)
  const local =
    maxStalenessMs > 0 ? createLocalAdmission({ store, now, maxStalenessMs, tally }) : undefined
  const resolve =
    references && resolvesReferences(store)
      ? createResolver?.({ store, keysOf, audience: references.audience, observesBans })
      : undefined

  /** Checks a token that was refused here before. */
  async function refusalInStore(
    principal: Principal,
    keys: RequestKeys,
  ): Promise<AdmissionVerdict | undefined> {
    const nowMs = now()
    const facts = await store.consult({ ...keys, limits: [], nowMs })
    const refusal = findRefusal(principal, keys, facts, { proof: undefined, refusals, nowMs })
    if (refusal === undefined) refusals.revoked.delete(keys.revocation.cacheKey)
    return refusal
  }

  /** Returns the refusal, or the decision of the limits; with the ban in observe mode. */
  function conclude(
    refusal: AdmissionVerdict | undefined,
    limits: readonly LimitRequest[],
    states: AdmissionFacts['limits'],
    observed: Denial | undefined,
  ): AdmissionVerdict {
    const verdict = refusal ?? weigh(limits, states, refusals, now())
    return observed === undefined
      ? verdict
      : { ...verdict, observed: [observed, ...verdict.observed] }
  }

  return {
    async admit(request) {
      const { principal, address, limits, proof, relation, strict, isUnverified = false } = request
      const checksBans = request.checksBans === true || isUnverified
      if (principal === null && limits.length === 0 && !checksBans) return ADMITTED
      const derived = keysOf(principal, address, isUnverified)
      const keys = derived instanceof Promise ? await derived : derived
      const { cacheKey } = keys.revocation
      const remembered = recallCredential(cacheKey, proof, refusals, now())
      if (remembered !== undefined) return remembered
      if (principal !== null && refusals.revoked.get(cacheKey) !== undefined) {
        const refusal = await refusalInStore(principal, keys)
        if (refusal !== undefined) return refusal
      }
      const exhausted = recallLimits(limits, refusals, now())
      if (exhausted !== undefined) return exhausted
      const needsCall = strict === true || proof !== undefined || relation !== undefined
      const states = needsCall ? undefined : local?.admit(keys.parties, limits)
      if (states !== undefined)
        return { ...ADMITTED, limits: states, renewal: local?.renewal(limits) }

      const { caller, revocation, bans } = keys
      // Read before the call, so that the store and this function judge bans by the same time.
      const nowMs = now()
      const call = local?.beginCall(limits)
      const query = {
        caller,
        revocation,
        bans,
        observedBans: observesBans ? bans.map((ban) => observedBan(store.keys, ban)) : undefined,
        limits: call?.limits ?? limits,
        proof,
        relation,
        since: call?.since,
        nowMs,
      }
      let facts: AdmissionFacts
      try {
        facts = await store.consult(query)
      } catch (error) {
        if (call !== undefined) local?.endCall(call, undefined)
        if (principal !== null || !(error instanceof Unavailable) || !limits.every(passesUncounted))
          throw error
        if (isUnverified && !(request.passesOutage ?? limits.some(saysAllow))) throw error
        return { ...ADMITTED, uncounted: limits.map(({ rule }) => rule.name) }
      }
      const mark = call && local?.endCall(call, facts)
      const refusal = findRefusal(principal, keys, facts, { proof, refusals, nowMs })
      const observed = findBan(keys.bans, facts.observedUntilSeconds, nowMs)
      const isClean = refusal === undefined && observed === undefined
      for (const party of keys.parties) party.cleanAt = isClean ? mark : undefined
      const verdict = conclude(refusal, limits, facts.limits, observed)
      if (verdict.denial !== undefined || (local === undefined && relation === undefined))
        return verdict
      return { ...verdict, relation: facts.relation, renewal: local?.renewal(limits) }
    },

    async recheck(callers) {
      const derived = callers.map(({ principal, address }) => keysOf(principal, address))
      const all = await Promise.all(derived)
      await local?.refresh()
      const doubtful = new Set(
        local === undefined ? all : all.filter((one) => !local.holds(one.parties)),
      )
      // Read before the call: what changes during the call is reported to the next one.
      const mark = local?.mark()
      const nowMs = now()
      const read = await store.read(
        [...doubtful].map(({ caller, parties }) => ({
          caller,
          keys: parties.flatMap((party) => party.keys),
        })),
      )
      return callers.map(({ principal }, index) => {
        const keys = all[index]
        if (keys === undefined || !doubtful.has(keys)) return undefined
        const facts = factsFor(store.keys, keys, { read, proofUsed: false }, true)
        const refusal = findRefusal(principal, keys, facts, { proof: undefined, refusals, nowMs })
        const observed = findBan(keys.bans, facts.observedUntilSeconds, nowMs)
        const isClean = refusal === undefined && observed === undefined
        for (const party of keys.parties) party.cleanAt = isClean ? mark : undefined
        return refusal?.denial
      })
    },

    async admitReference(request) {
      if (references === undefined || resolve === undefined)
        throw new Error('admit: createAdmission() needs the `references` of authenticate()')
      const nowMs = now()
      const { hash } = request.reference
      const remembered =
        recallCredential(hash, request.proof, refusals, nowMs) ??
        recallLimits(request.limits.flatMap(withKey), refusals, nowMs)
      if (remembered !== undefined)
        return { ...remembered, principal: undefined, refused: refusals.revoked.get(hash)?.caller }
      const resolved = await resolve(request, nowMs)
      const { principal, failed, signer, refused, keys, facts, limits, states } = resolved
      if (principal !== undefined) references.remember(request.reference.text, principal)
      // A reference that is not valid did not use its proof.
      const proof = principal && request.proof
      const refusal = findRefusal(principal ?? null, keys, facts, { proof, refusals, nowMs })
      const counted = refusal === undefined ? await states() : []
      const observed = findBan(keys.bans, facts.observedUntilSeconds, nowMs)
      const verdict = conclude(refusal, limits, counted, observed)
      if (failed === undefined || verdict.denial !== undefined)
        return { ...verdict, principal, refused }
      if (failed === 'revoked') {
        const reason = 'token'
        rememberRevoked(refusals, hash, { reason, caller: refused }, nowMs)
        return { ...verdict, denial: { code: 'token_revoked', by: reason }, principal, refused }
      }
      const denial: Denial = { code: 'token_rejected', check: failed, ...(signer && { signer }) }
      return { ...verdict, denial, principal, refused }
    },
  }
}
