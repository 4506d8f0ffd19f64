/** The one decision of `admit`: revoked, cut off, banned, or over a limit? One call answers all. */
import { Unavailable } from '../errors.ts'
import type { RelationQuery } from '../relations/authority.ts'
import type { Principal } from '../tokens/principal.ts'
import type { References } from '../tokens/references.ts'
import { banOf, observedBan } from './ban.ts'
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

/** A request that is held up for longer before the origin is asked is asked about again. */
export const ADMITTED_FOR_MS = 1_000

export interface AdmissionRequest {
  readonly principal: Principal | null
  /** Normalised client address. */
  readonly address: string
  readonly limits: readonly LimitRequest[]
  /** A proof of possession, which may be used once. */
  readonly proof?: ProofUse | undefined
  /** A relation to be asked for in the same call, which is then made. */
  readonly relation?: RelationQuery | undefined
  /** Whether an anonymous caller is asked about where no limit is. Default false. */
  readonly asksBans?: boolean
  /** Whether bans that only would hold are looked for, too. Default false. */
  readonly observesBans?: boolean
  /** Whether the store is to be asked, whatever the isolate may go by. Default false. */
  readonly strict?: boolean
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
  /**
   * How old may be what is known of revocations, cut-offs and bans, milliseconds. Default 0: the store
   * is asked with every request, and nothing is taken ahead of limits.
   */
  readonly maxStalenessMs?: number
  /** Where it is counted what was admitted without a call. */
  readonly local?: LocalTally | undefined
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
 *
 * With a bound on staleness, whom this isolate has found good is admitted without a call while that is
 * known to hold, if all limits of the request hold a unit for it that was taken ahead (`lease`).
 * Requests with a proof of possession, or of which a relation is to be known, and credentials that were
 * refused here before, are asked about.
 */
export function createAdmission({
  store,
  now,
  references,
  memoryEntries,
  tallies,
  maxStalenessMs = 0,
  local: tally,
}: AdmissionOptions): Admission {
  const refusals = createRefusals(memoryEntries, tallies)
  const keysOf = createKeyCache()
  const local =
    maxStalenessMs > 0 ? createLocalAdmission({ store, now, maxStalenessMs, tally }) : undefined

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
    async admit({ principal, address, limits, proof, relation, asksBans, observesBans, strict }) {
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

      const watched = observesBans === true ? keys.bans.map(observedBan) : undefined
      const { revocation, bans } = keys
      // Of before the call: what holds is decided there by the same moment as here.
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
      return admitReference(request, { store, now, references, refusals, keysOf })
    },
  }
}
