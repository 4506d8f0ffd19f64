/** Resolves a reference that this isolate has not cached, for the admission decision. */

import type { Unavailable } from '../../errors.ts'
import type { TokenCheck } from '../../problems/checks.ts'
import type { Signer } from '../../problems/reasons.ts'
import type { RedisKeys } from '../../redis/keys.ts'
import { malformed } from '../../redis/reply.ts'
import { addressBanKeys, observedBan } from '../abuse/ban.ts'
import type { Principal } from '../principal.ts'
import { NOTHING_REVOCABLE } from '../revocation/revocation.ts'
import { checkBinding } from '../tokens/credential.ts'
import type { DpopProof } from '../tokens/dpop.ts'
import { checkRecord, principalOfRecord, type Reference } from '../tokens/reference.ts'
import type { createKeyCache, DecidingKeys } from './keys.ts'
import type { LimitRequest, LimitRule, RateLimit } from './limit.ts'
import type { LimitWindow } from './limit-key.ts'
import type { AdmissionFacts, AdmissionStore, ReferenceFacts, ReferenceLimit } from './store.ts'

/** A limit. Its window may depend on the principal of the reference. */
export interface DeferredLimit {
  readonly rule: LimitRule
  /** Undefined if only a function can name the window from the principal. Costs a second call. */
  readonly window: ReferenceLimit['window'] | undefined
  /** As in `LimitRequest`. */
  readonly slot?: string | undefined
  /** Returns the window, as in `LimitRequest`. */
  keyOf(principal: Principal): LimitWindow | Promise<LimitWindow>
}

export interface ReferenceRequest {
  readonly reference: Reference
  readonly proof: DpopProof | undefined
  /** Normalized client address. */
  readonly address: string
  readonly limits: readonly DeferredLimit[]
}

/** What the store has about a reference. */
interface ResolvedReference {
  /** Undefined: the reference is unknown or not valid. */
  readonly principal: Principal | undefined
  /** Why there is no principal. */
  readonly failed: TokenCheck | undefined
  /** Whose credential failed, if the store has its record. */
  readonly signer?: Signer | undefined
  /** The same of an API key, with all that its record says. */
  readonly refused?: Principal | undefined
  readonly keys: DecidingKeys
  readonly facts: Omit<AdmissionFacts, 'limits'>
  /** The limits that the request counts for: without a principal, those with a known window. */
  readonly limits: readonly LimitRequest[]
  /**
   * Returns the states of {@link limits}. Call it only if nothing else refuses the request: it counts
   * the limits whose windows a function names.
   */
  states(): Promise<AdmissionFacts['limits']>
}

/**
 * Creates the resolver: one call to the store for a reference. It throws `Unavailable` if the keys
 * that the store has read are not the keys that decide about the principal, or if the store has
 * counted other windows.
 */
export function createReferenceResolver({
  store,
  keysOf,
  audience,
  observesBans,
}: {
  readonly store: AdmissionStore
  readonly keysOf: ReturnType<typeof createKeyCache>
  /** This gateway. */
  readonly audience: string
  readonly observesBans: boolean
}) {
  const { keys: names } = store
  return async function resolve(
    { reference, proof, address, limits }: ReferenceRequest,
    nowMs: number,
  ): Promise<ResolvedReference> {
    const counted = limits.flatMap(withWindow)
    const thumbprint = proof?.thumbprint
    const addressBans = await addressBanKeys(names, address)
    const [addressBan, credentialsBan] = addressBans
    const found = await store.resolve({
      reference,
      audience,
      thumbprint,
      nowMs,
      limits: counted,
      proof,
      recordsUse: true,
      addressBan: addressBan.key,
      observedBan: observesBans ? observedBan(names, addressBan).key : undefined,
      credentialsBan: credentialsBan.key,
      observedCredentialsBan: observesBans ? observedBan(names, credentialsBan).key : undefined,
    })
    const { record } = found
    const failed =
      record === undefined
        ? 'reference_unknown'
        : (checkRecord(record, { audience, nowMs }) ??
          checkBinding(record.confirmation, thumbprint))
    if (record === undefined || failed !== undefined) {
      const keys: DecidingKeys = { revocation: NOTHING_REVOCABLE, bans: addressBans }
      const known = counted.flatMap(withKey)
      const states = found.limits.filter((_, index) => 'key' in (counted[index]?.window ?? {}))
      return {
        principal: undefined,
        failed,
        signer: record && { issuer: record.tokenIssuer, subject: record.subject },
        refused: record?.kind === 'api_key' ? await principalOfRecord(record) : undefined,
        keys,
        facts: factsFor(names, keys, found, observesBans),
        limits: known,
        states: async () => readStates(known, states),
      }
    }
    const principal = await principalOfRecord(record)
    const keys = await keysOf(principal, address)
    const requestsOf = (some: readonly DeferredLimit[]) =>
      Promise.all(
        some.map(async ({ rule, keyOf, slot }) => ({ rule, ...(await keyOf(principal)), slot })),
      )
    const first = await requestsOf(limits.filter(({ window }) => window !== undefined))
    const later = await Promise.all(
      (await requestsOf(limits.filter(({ window }) => window === undefined))).map((request) =>
        completed(request, principal),
      ),
    )
    return {
      principal,
      failed: undefined,
      keys,
      facts: factsFor(names, keys, found, observesBans),
      limits: [...first, ...later],
      async states() {
        const states = readStates(first, found.limits)
        if (later.length === 0) return states
        const query = { revocation: NOTHING_REVOCABLE, bans: [], limits: later, nowMs }
        return [...states, ...(await store.consult(query)).limits]
      },
    }
  }
}

/** Adds what a metered limit needs, such as the sources of the caller's plan. Keeps the slot. */
export async function completed(
  request: LimitRequest,
  principal: Principal,
): Promise<LimitRequest> {
  const { meter } = request.rule
  if (meter === undefined) return request
  return { ...(await meter.complete(request, principal)), slot: request.slot }
}

function withWindow({ rule, window, slot }: DeferredLimit): ReferenceLimit[] {
  return window === undefined ? [] : [{ rule, window, slot }]
}

/** Returns the limit as a request, if its window is known without a principal. */
export function withKey({ rule, window }: Pick<DeferredLimit, 'rule' | 'window'>): LimitRequest[] {
  return window !== undefined && 'key' in window ? [{ rule, ...window }] : []
}

/** Returns the values in the order of `keys`. Throws `Unavailable` for a key that was not read. */
export function factsFor(
  names: RedisKeys,
  { revocation, bans }: DecidingKeys,
  { read, proofUsed }: Pick<ReferenceFacts, 'read' | 'proofUsed'>,
  observesBans: boolean,
): Omit<AdmissionFacts, 'limits'> {
  const storedValue = ({ key }: { readonly key: string }): number | undefined => {
    if (!read.has(key)) throw malformed()
    return read.get(key)
  }
  const { token: key } = revocation
  return {
    tokenRevoked: key !== undefined && storedValue({ key }) !== undefined,
    revokedBeforeSeconds: revocation.revokedBefore.map(storedValue),
    bannedUntilSeconds: bans.map(storedValue),
    observedUntilSeconds: observesBans
      ? bans.map((ban) => storedValue(observedBan(names, ban)))
      : [],
    proofUsed,
  }
}

/** Returns the states of windows. Throws `Unavailable` if the store counted a different window. */
function readStates(
  requests: readonly LimitRequest[],
  answers: ReferenceFacts['limits'],
): (RateLimit | Unavailable)[] {
  return requests.map(({ key }, index) => {
    const answer = answers[index]
    if (answer?.key !== key) throw malformed()
    return answer.state
  })
}
