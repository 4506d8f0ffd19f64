/** Resolves a reference on a cluster: its record first, then the admission in the lane of its subject. */
import type { RedisConnection } from '../../../redis/connection.ts'
import { recordKeys } from '../../../redis/keys.ts'
import { sendCommand } from '../../../redis/reply.ts'
import { evalCommand } from '../../../redis/script.ts'
import { type BanKey, listSubjectBans, observedBan } from '../../abuse/ban.ts'
import type { Principal } from '../../principal.ts'
import { deriveRevocationKeys, NOTHING_REVOCABLE } from '../../revocation/revocation.ts'
import { checkBinding } from '../../tokens/credential.ts'
import { checkRecord, parseStoredReference, principalOfRecord } from '../../tokens/reference.ts'
import type { LimitRequest } from '../limit.ts'
import { windowOfPrincipal } from '../limit-key.ts'
import { completed } from '../reference-resolver.ts'
import type {
  AdmissionFacts,
  AdmissionQuery,
  AdmissionStore,
  ReferenceFacts,
  ReferenceLimit,
  ReferenceQuery,
} from '../store.ts'
import { refuses } from './legs.ts'
import { RECORD_USE_SCRIPT } from './scripts.generated.ts'

/**
 * Resolves a reference in two rounds: the record is in the control lane, and names the subject, whose
 * lane decides. So the windows are those of all other requests of the subject, and each is counted or
 * refused as a whole. An isolate resolves a reference only until it has cached it.
 */
export async function resolveInLanes(
  connection: RedisConnection,
  consult: AdmissionStore['consult'],
  query: ReferenceQuery,
): Promise<ReferenceFacts> {
  const { keys } = connection
  const { reference, audience, thumbprint, nowMs, isReading } = query
  const text = await sendCommand(connection, ['GET', keys.reference + reference.hash])
  const record = text === null ? undefined : parseStoredReference(text)
  const isValid =
    record !== undefined &&
    checkRecord(record, { audience, nowMs }) === undefined &&
    checkBinding(record.confirmation, thumbprint) === undefined
  const principal = isValid ? await principalOfRecord(record) : undefined
  const bans = await bansOf(connection, query, principal)
  const requests = await Promise.all(query.limits.map((limit) => requestOf(limit, principal)))
  const limits = requests.filter((request) => request !== undefined)
  const asked: AdmissionQuery = {
    caller: principal?.subject ?? reference.hash,
    revocation: principal ? await deriveRevocationKeys(keys, principal) : NOTHING_REVOCABLE,
    bans: bans.inForce,
    observedBans: bans.observed,
    limits,
    proof: principal && query.proof,
    isReading: isReading ?? false,
    nowMs,
  }
  const facts = await consult(asked)
  if (query.recordsUse && principal?.key !== undefined && !refuses(asked, facts))
    recordUse(connection, principal.key)
  return {
    record,
    proofUsed: facts.proofUsed,
    read: new Map(valuesOf(asked, facts)),
    limits: requests.map((request) => {
      const state = request && facts.limits[limits.indexOf(request)]
      return request && state && { key: request.key, state }
    }),
  }
}

async function bansOf(
  { keys }: RedisConnection,
  query: ReferenceQuery,
  principal: Principal | undefined,
) {
  const address = (key: string | undefined): BanKey[] =>
    key === undefined ? [] : [{ by: 'address', key }]
  const ofSubject = principal ? await listSubjectBans(keys, principal) : []
  const isObserving = query.observedBan !== undefined
  return {
    inForce: [...address(query.addressBan), ...address(query.credentialsBan), ...ofSubject],
    observed: [
      ...address(query.observedBan),
      ...address(query.observedCredentialsBan),
      ...(isObserving ? ofSubject.map((ban) => observedBan(keys, ban)) : []),
    ],
  }
}

/** Returns the limit as a request. Undefined: its window depends on a principal that is not known. */
async function requestOf(
  limit: ReferenceLimit,
  principal: Principal | undefined,
): Promise<LimitRequest | undefined> {
  const { rule, window, slot } = limit
  if ('key' in window) {
    const request = { rule, key: window.key, owner: window.owner, slot }
    return { ...request, ...(await rule.meter?.complete(request, principal ?? null)), slot }
  }
  if (principal === undefined) return undefined
  const { engine, name } = rule
  const found = await windowOfPrincipal({ name, engine, by: window.by }, principal)
  const { everywhere, owner } = found
  const own = window.isEverywhere ? { key: everywhere ?? found.key, owner } : found
  return completed({ rule, ...own, slot }, principal)
}

/** Returns each key that was read, with its value. */
function* valuesOf(
  { revocation, bans, observedBans = [] }: AdmissionQuery,
  facts: AdmissionFacts,
): Iterable<[string, number | undefined]> {
  if (revocation.token !== undefined) yield [revocation.token, facts.tokenRevoked ? 1 : undefined]
  for (const [at, { key }] of revocation.revokedBefore.entries())
    yield [key, facts.revokedBeforeSeconds[at]]
  for (const [at, { key }] of bans.entries()) yield [key, facts.bannedUntilSeconds[at]]
  for (const [at, { key }] of observedBans.entries()) yield [key, facts.observedUntilSeconds[at]]
}

/** Records the use of an API key, at most once a minute. The request does not wait for it. */
function recordUse(connection: RedisConnection, id: string): void {
  const name = recordKeys(connection.keys).apiKeyUse + id
  connection.send([evalCommand(RECORD_USE_SCRIPT, [name], [])]).catch(() => undefined)
}
