/** The stores of admission in memory: limits, revocations, bans, references, used proofs. */
import { listSubjectBans, observedBan } from '../access/abuse/ban.ts'
import type { LimitRequest, RateLimit } from '../access/admission/limit.ts'
import { windowOfPrincipal } from '../access/admission/limit-key.ts'
import type {
  AdmissionFacts,
  AdmissionQuery,
  AdmissionStore,
  ProofUse,
  ReferenceFacts,
  ReferenceLimit,
  ReferenceQuery,
} from '../access/admission/store.ts'
import type { Principal } from '../access/principal.ts'
import {
  deriveRevocationKeys,
  NOTHING_REVOCABLE,
  type RevocationKeys,
  type Revocations,
  revokedBeforeKey,
  revokedBy,
  revokedTokenKey,
} from '../access/revocation/revocation.ts'
import { checkBinding } from '../access/tokens/credential.ts'
import {
  checkRecord,
  principalOfRecord,
  REFERENCE_TOLERANCE_SECONDS,
  type ReferenceRecord,
  type ReferenceStore,
} from '../access/tokens/reference.ts'
import { DEFAULT_KEYS } from '../redis/keys.ts'
import { createExpiringValues, type ExpiringValues } from './expiring-values.ts'
import {
  createSizedWindow,
  findUnits,
  type SizedWindow,
  slotIn,
  unlimited,
} from './metered-window.ts'

export interface MemoryStore {
  readonly admission: AdmissionStore
  readonly revocations: Revocations
  readonly references: ReferenceStore
  /** Seconds since the epoch at which each ban ends, by its key. */
  readonly bans: ExpiringValues<number>
  /** The name of the plan of each party, by the key of its record. */
  readonly plans: Map<string, string>
}

/**
 * Creates empty stores, which decide as the stores in Redis do. `now` returns milliseconds since the
 * epoch; limits may use fractions of it.
 *
 * Counts every limit exactly, whatever its engine is. Does NOT support leases, the revocation feed,
 * relations, or limits that operators have overridden.
 */
export function createMemoryStore(now: () => number): MemoryStore {
  const revoked = createExpiringValues<number>(now)
  const bans = createExpiringValues<number>(now)
  const usedProofs = createExpiringValues<true>(now)
  const records = createExpiringValues<ReferenceRecord>(now)
  const windows = new Map<string, SizedWindow>()
  const plans = new Map<string, string>()

  function findWindow({ rule, key }: LimitRequest, limit: number): SizedWindow {
    let window = windows.get(key)
    if (window === undefined) {
      window = createSizedWindow(rule)
      windows.set(key, window)
    }
    window.resize(limit)
    return window
  }

  /** Takes the cost of a request from all limits or, if one of them refuses, from none. */
  function count(requests: readonly LimitRequest[]): RateLimit[] {
    const nowMicros = Math.round(now() * 1000)
    const counted = requests.map((request) => {
      const { rule, slot } = request
      const { units: limit, plan } = findUnits(request, (source) =>
        plans.get(DEFAULT_KEYS.plan + source),
      )
      if (limit === undefined) return { rule, admitted: true, window: undefined }
      const window = findWindow(request, limit)
      const cost = rule.cost ?? 1
      return { rule, window, limit, cost, slot, plan, admitted: window.fits(nowMicros, cost) }
    })
    const isAdmitted = counted.every(({ rule, admitted }) => admitted || rule.mode === 'observe')
    return counted.map(({ rule, admitted, ...of }) => {
      if (of.window === undefined) return unlimited(rule)
      const { window, limit, cost, slot, plan } = of
      const isTaken = admitted && isAdmitted
      if (isTaken) window.take(nowMicros, cost, slot)
      const { remaining, waitMs } = window.state(nowMicros, cost)
      const resetMs = Math.floor(now()) + waitMs
      const named = admitted || plan === undefined ? {} : { plan }
      const state = { rule, limit, remaining, resetMs, admitted, ...named }
      return isTaken && slot !== undefined ? { ...state, slot: slotIn(window, slot) } : state
    })
  }

  /** Returns the facts that decide about a request before its limits. */
  function judgeStanding(
    keys: Pick<AdmissionQuery, 'revocation' | 'bans' | 'observedBans' | 'nowMs'>,
  ) {
    const { revocation, observedBans = [], nowMs } = keys
    const facts = {
      tokenRevoked: revocation.token !== undefined && revoked.get(revocation.token) !== undefined,
      revokedBeforeSeconds: revocation.revokedBefore.map(({ key }) => revoked.get(key)),
      bannedUntilSeconds: keys.bans.map(({ key }) => bans.get(key)),
      observedUntilSeconds: observedBans.map(({ key }) => bans.get(key)),
    }
    const isBanned = facts.bannedUntilSeconds.some((until = 0) => until > nowMs / 1000)
    return { facts, isRefused: isBanned || revokedBy(revocation, revocation, facts) !== undefined }
  }

  /** Marks a proof as used. Returns whether it was used before. */
  function isReplayed(proof: ProofUse | undefined): boolean {
    if (proof === undefined) return false
    if (usedProofs.get(proof.replayId) !== undefined) return true
    usedProofs.set(proof.replayId, true, now() + proof.replayTtlSeconds * 1000)
    return false
  }

  async function consult(query: AdmissionQuery): Promise<AdmissionFacts> {
    const { facts, isRefused } = judgeStanding(query)
    const proofUsed = !isRefused && isReplayed(query.proof)
    const limits = isRefused || proofUsed ? query.limits.map(() => undefined) : count(query.limits)
    return { ...facts, proofUsed, limits }
  }

  async function resolve(query: ReferenceQuery): Promise<ReferenceFacts> {
    const { reference, audience, thumbprint, proof, nowMs } = query
    const { addressBan, observedBan, credentialsBan, observedCredentialsBan } = query
    const record = records.get(reference.hash)
    const principal = record && (await principalOfRecord(record))
    const isValid =
      record !== undefined &&
      checkRecord(record, { audience, nowMs }) === undefined &&
      checkBinding(record.confirmation, thumbprint) === undefined
    const revocation = principal
      ? await deriveRevocationKeys(DEFAULT_KEYS, principal)
      : NOTHING_REVOCABLE
    const banKeys = [
      ...[addressBan, credentialsBan].filter((key) => key !== undefined),
      ...(await subjectBanKeysOf(principal, 'enforce')),
    ]
    const observedKeys = [
      ...[observedBan, observedCredentialsBan].filter((key) => key !== undefined),
      ...(observedBan === undefined ? [] : await subjectBanKeysOf(principal, 'observe')),
    ]
    const owner = isValid ? principal : undefined
    const requests = await Promise.all(query.limits.map((limit) => createRequest(limit, owner)))
    // Nothing below waits, so no other request decides in between.
    const { isRefused } = judgeStanding({
      revocation,
      bans: banKeys.map((key) => ({ by: 'address', key })),
      nowMs,
    })
    const proofUsed = isValid && !isRefused && isReplayed(proof)
    const counted = requests.filter((request) => request !== undefined)
    const states = isRefused || proofUsed ? [] : count(counted)
    return {
      record,
      proofUsed,
      read: new Map([
        ...revocationKeysIn(revocation).map((key) => [key, revoked.get(key)] as const),
        ...[...banKeys, ...observedKeys].map((key) => [key, bans.get(key)] as const),
      ]),
      limits: requests.map((request) => {
        const state = request && states[counted.indexOf(request)]
        return request && state && { key: request.key, state }
      }),
    }
  }

  return {
    admission: {
      keys: DEFAULT_KEYS,
      consult,
      resolve,
      read: async (callers) =>
        new Map(
          callers.flatMap(({ keys }) =>
            keys.map((key) => [key, revoked.get(key) ?? bans.get(key)] as const),
          ),
        ),
    },
    bans,
    plans,
    revocations: {
      async revokeToken({ tokenIdHash, untilSeconds }) {
        // At least one second, as in Redis, which refuses a life of 0.
        const untilMs = Math.max(untilSeconds * 1000, now() + 1000)
        revoked.set(revokedTokenKey(DEFAULT_KEYS, tokenIdHash), 1, untilMs)
      },
      async revokeBefore({ kind, issuer, value, atSeconds, ttlSeconds }) {
        const key = await revokedBeforeKey(DEFAULT_KEYS, kind, issuer, value)
        const latest = Math.max(revoked.get(key) ?? 0, Math.floor(atSeconds))
        revoked.set(key, latest, Math.max(revoked.endOf(key), now() + ttlSeconds * 1000))
      },
      async liftRevokedBefore({ kind, issuer, value }) {
        revoked.delete(await revokedBeforeKey(DEFAULT_KEYS, kind, issuer, value))
      },
    },
    references: {
      async put(hash, record) {
        const endSeconds = record.expiresAtSeconds ?? Number.POSITIVE_INFINITY
        records.set(hash, record, (endSeconds + REFERENCE_TOLERANCE_SECONDS) * 1000)
      },
      find: async (hash) => records.get(hash),
      remove: async (hash) => records.delete(hash),
    },
  }
}

function revocationKeysIn({ token, revokedBefore }: RevocationKeys): string[] {
  const cutoffs = revokedBefore.map(({ key }) => key)
  return token === undefined ? cutoffs : [token, ...cutoffs]
}

async function subjectBanKeysOf(
  principal: Principal | undefined,
  mode: 'enforce' | 'observe',
): Promise<string[]> {
  if (principal === undefined) return []
  const bans = await listSubjectBans(DEFAULT_KEYS, principal)
  return bans.map((ban) => (mode === 'enforce' ? ban : observedBan(DEFAULT_KEYS, ban)).key)
}

/** Returns the window to count; undefined if only the principal determines it and there is none. */
async function createRequest(
  { rule, window, slot }: ReferenceLimit,
  principal: Principal | undefined,
): Promise<LimitRequest | undefined> {
  if ('key' in window) return { rule, key: window.key, slot }
  if (principal === undefined) return undefined
  const { by, isEverywhere = false } = window
  const { key } = await windowOfPrincipal(
    { name: rule.name, engine: isEverywhere ? {} : rule.engine, by },
    principal,
  )
  const request = { rule, key }
  return rule.meter === undefined
    ? request
    : { ...(await rule.meter.complete(request, principal)), slot }
}
