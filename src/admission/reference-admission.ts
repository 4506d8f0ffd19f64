/**
 * Admission of a reference that this isolate has not cached: resolves it and decides, in one call.
 */

import { addressBanKey, type BanKey, observedBan } from '../abuse/ban.ts'
import { Unavailable } from '../errors.ts'
import type { Principal } from '../identity/principal.ts'
import type { RevocationKeys } from '../revocation/revocation.ts'
import { failedBindingOf } from '../tokens/credential.ts'
import type { DpopProof } from '../tokens/dpop.ts'
import {
  failedCheckOf,
  principalOfRecord,
  type RecordUse,
  type Reference,
  type ReferenceRecord,
} from '../tokens/reference.ts'
import type { References } from '../tokens/references.ts'
import type { TokenCheck } from '../tokens/rejection.ts'
import type { createKeyCache, DecidingKeys } from './keys.ts'
import type { LimitRequest, LimitRule, RateLimit } from './limit.ts'
import type { AdmissionFacts, AdmissionStore, ReferenceFacts, ReferenceLimit } from './store.ts'
import {
  type AdmissionVerdict,
  type Refusals,
  recallCredential,
  recallLimits,
  refusalOf,
  weigh,
  withObservedBan,
} from './verdict.ts'

/** A limit. Its window may depend on the principal of the reference. */
export interface DeferredLimit {
  readonly rule: LimitRule
  /**
   * Undefined if only a function can name the window from the principal. This costs a second call.
   */
  readonly window: ReferenceLimit['window'] | undefined
  /** Returns the key, as in `LimitRequest.key`. */
  keyOf(principal: Principal): string | Promise<string>
}

export interface ReferenceRequest {
  readonly reference: Reference
  readonly proof: DpopProof | undefined
  /** Normalised client address. */
  readonly address: string
  readonly limits: readonly DeferredLimit[]
}

export interface ReferenceVerdict extends AdmissionVerdict {
  /**
   * The reference's principal. Undefined if the reference is unknown or not valid, and if a cached
   * refusal made the call unnecessary.
   */
  readonly principal: Principal | undefined
}

export interface ReferenceAdmission {
  readonly store: AdmissionStore
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly references: References
  readonly refusals: Refusals
  readonly keysOf: ReturnType<typeof createKeyCache>
  /** As in `AdmissionOptions`. */
  readonly observesBans: boolean
}

/**
 * Resolves a reference and decides about the request. Caches the principal of a valid reference,
 * revoked or not. Throws `Unavailable` if the keys that the store read are not the keys that decide
 * about that principal.
 */
export async function admitReference(
  { reference, proof, address, limits }: ReferenceRequest,
  { store, now, references, refusals, keysOf, observesBans }: ReferenceAdmission,
): Promise<ReferenceVerdict> {
  const asked = limits.flatMap(withWindow)
  const named = asked.flatMap(withKey)
  const nowMs = now()
  const remembered =
    recallCredential(undefined, proof, refusals, nowMs) ?? recallLimits(named, refusals, nowMs)
  if (remembered !== undefined) return { ...remembered, principal: undefined }

  const use = { audience: references.audience, thumbprint: proof?.thumbprint, nowMs }
  const addressBan: BanKey = { by: 'address', key: await addressBanKey(address) }
  const facts = await store.resolve({
    ...{ reference, ...use, limits: asked, proof },
    addressBan: addressBan.key,
    observedBan: observesBans ? observedBan(addressBan).key : undefined,
  })
  const withObserved = (verdict: AdmissionVerdict, bans: readonly BanKey[]): AdmissionVerdict => {
    if (!observesBans) return verdict
    const watched = bans.map(observedBan)
    return withObservedBan(verdict, watched, watched.map(reader(facts)), nowMs)
  }
  const failed = failureOf(facts.record, use)
  if (facts.record === undefined || failed !== undefined) {
    const keys: DecidingKeys = { revocation: NOTHING, bans: [addressBan] }
    const states = asked.flatMap((limit, index) => withKey(limit).map(() => facts.limits[index]))
    const verdict =
      refusalOf(null, keys, factsFor(keys, facts), { proof: undefined, refusals, nowMs }) ??
      weigh(named, statesOf(named, states), refusals, nowMs)
    const check = failed ?? 'reference_unknown'
    const denial = verdict.denial ?? { code: 'token_rejected', check }
    return { ...withObserved({ ...verdict, denial }, keys.bans), principal: undefined }
  }

  const principal = await principalOfRecord(facts.record)
  const keys = await keysOf(principal, address)
  const refusal = refusalOf(principal, keys, factsFor(keys, facts), { proof, refusals, nowMs })
  references.remember(reference.text, principal)
  if (refusal !== undefined) return { ...withObserved(refusal, keys.bans), principal }

  const requests = await Promise.all(
    limits.map(async ({ rule, keyOf }) => ({ rule, key: await keyOf(principal) })),
  )
  const isAsked = (_: unknown, index: number) => limits[index]?.window !== undefined
  const [first, later] = [
    requests.filter(isAsked),
    requests.filter((request, index) => !isAsked(request, index)),
  ]
  const states: AdmissionFacts['limits'][number][] = statesOf(first, facts.limits)
  if (later.length > 0) {
    const query = { revocation: NOTHING, bans: [], limits: later, nowMs }
    states.push(...(await store.consult(query)).limits)
  }
  const verdict = weigh([...first, ...later], states, refusals, nowMs)
  return { ...withObserved(verdict, keys.bans), principal }
}

/** This query needs nothing about the token. */
const NOTHING: RevocationKeys = {
  memory: 'reference',
  token: undefined,
  revokedBefore: [],
  issuedAtSeconds: 0,
}

function withWindow({ rule, window }: DeferredLimit): ReferenceLimit[] {
  return window === undefined ? [] : [{ rule, window }]
}

function withKey({ rule, window }: ReferenceLimit): LimitRequest[] {
  return 'key' in window ? [{ rule, key: window.key }] : []
}

function failureOf(
  record: ReferenceRecord | undefined,
  { thumbprint, ...use }: RecordUse & { readonly thumbprint: string | undefined },
): TokenCheck | undefined {
  if (record === undefined) return undefined
  return failedCheckOf(record, use) ?? failedBindingOf(record.confirmation, thumbprint)
}

/**
 * Returns a function that returns the value of a key. It throws `Unavailable` for a key that was
 * not read.
 */
function reader({ read }: ReferenceFacts) {
  return function readOf({ key }: { readonly key: string }): number | undefined {
    if (!read.has(key)) throw new Unavailable('redis', 'malformed')
    return read.get(key)
  }
}

/**
 * Returns the values in the order of the keys. Throws `Unavailable` for a key that was not read.
 */
function factsFor({ revocation, bans }: DecidingKeys, facts: ReferenceFacts) {
  const readOf = reader(facts)
  const { token: key } = revocation
  return {
    tokenRevoked: key !== undefined && readOf({ key }) !== undefined,
    revokedBeforeSeconds: revocation.revokedBefore.map(readOf),
    bannedUntilSeconds: bans.map(readOf),
    observedUntilSeconds: [],
    proofUsed: facts.proofUsed,
  } satisfies Omit<AdmissionFacts, 'limits'>
}

/** Returns the states of windows. Throws `Unavailable` if the store counted a different window. */
function statesOf(
  requests: readonly LimitRequest[],
  answers: ReferenceFacts['limits'],
): (RateLimit | Unavailable)[] {
  return requests.map(({ key }, index) => {
    const answer = answers[index]
    if (answer?.key !== key) throw new Unavailable('redis', 'malformed')
    return answer.state
  })
}
