/** The one decision of `admit`: revoked, cut off, banned, or over a limit? One call answers all. */
import { Unavailable } from '../errors.ts'
import type { Principal } from '../tokens/principal.ts'
import type { References } from '../tokens/references.ts'
import { observedBan } from './ban.ts'
import { createKeyCache, type RequestKeys } from './keys.ts'
import type { LimitRequest } from './limit.ts'
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
  withObservedBan,
} from './verdict.ts'

export type { AdmissionVerdict } from './verdict.ts'

export interface AdmissionRequest {
  readonly principal: Principal | null
  /** Normalised client address. */
  readonly address: string
  readonly limits: readonly LimitRequest[]
  /** A proof of possession, which may be used once. */
  readonly proof?: ProofUse | undefined
  /** Whether bans that only would hold are looked for, too. Default false. */
  readonly observesBans?: boolean
}

export interface Admission {
  /** Throws `Unavailable` where nobody can tell and the policy does not let it through. */
  admit(request: AdmissionRequest): Promise<AdmissionVerdict>
  /** The same for a reference that this isolate does not know, and whose principal it may be. */
  admitReference(request: ReferenceRequest): Promise<ReferenceVerdict>
}

export interface AdmissionOptions {
  readonly store: AdmissionStore
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** The same that `authenticate` looks into. Default: no reference is ever admitted. */
  readonly references?: References | undefined
  /** Entries of each of the isolate's memories. Default 10,000. */
  readonly memoryEntries?: number
  /** Where it is counted whether a refusal was remembered. */
  readonly tallies?: RefusalTallies
}

const ASKED_NOTHING: AdmissionVerdict = {
  denial: undefined,
  limits: [],
  uncounted: [],
  observed: NOTHING_OBSERVED,
}

/**
 * Makes the decision out of a store and a clock. Revocation fails closed always; a limit fails as
 * its `onUnavailable` says. Bans are there to shed load, not to keep anyone out of what is public:
 * where an anonymous request has no limits nothing is asked at all, and where its limits may pass
 * uncounted in an outage, so may a banned address.
 *
 * A token that this isolate has refused before is looked at before it is counted, so that it spends
 * nobody's budget: for that it costs a second call once its refusal has been taken back.
 */
export function createAdmission({
  store,
  now,
  references,
  memoryEntries,
  tallies,
}: AdmissionOptions): Admission {
  const refusals = createRefusals(memoryEntries, tallies)
  const keysOf = createKeyCache()

  /** What the store still says of a token that was refused here once. */
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
    async admit({ principal, address, limits, proof, observesBans }) {
      if (principal === null && limits.length === 0) return ASKED_NOTHING
      const known = keysOf(principal, address)
      const keys = known instanceof Promise ? await known : known
      const { memory } = keys.revocation
      const remembered = recallCredential(memory, proof, refusals, now())
      if (remembered !== undefined) return remembered
      if (principal !== null && refusals.revoked.recall(memory) !== undefined) {
        const still = await look(principal, keys)
        if (still !== undefined) return still
      }
      const spent = recallLimits(limits, refusals, now())
      if (spent !== undefined) return spent

      const watched = observesBans === true ? keys.bans.map(observedBan) : undefined
      const { revocation, bans } = keys
      // Of before the call: what holds is decided there by the same moment as here.
      const nowMs = now()
      const query = { revocation, bans, observedBans: watched, limits, proof, nowMs }
      let facts: AdmissionFacts
      try {
        facts = await store.consult(query)
      } catch (error) {
        if (principal !== null || !(error instanceof Unavailable) || !limits.every(passesUncounted))
          throw error
        return { ...ASKED_NOTHING, uncounted: limits.map(({ rule }) => rule.name) }
      }
      const verdict =
        refusalOf(principal, keys, facts, { proof, refusals, nowMs }) ??
        weigh(limits, facts.limits, refusals, now())
      if (watched === undefined) return verdict
      return withObservedBan(verdict, watched, facts.observedUntilSeconds, nowMs)
    },

    admitReference(request) {
      if (references === undefined)
        throw new Error('admit: createAdmission() needs the `references` of authenticate()')
      return admitReference(request, { store, now, references, refusals, keysOf })
    },
  }
}
