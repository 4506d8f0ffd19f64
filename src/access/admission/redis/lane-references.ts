/** Resolves a reference on a cluster. */
import type { RedisConnection } from '../../../redis/connection.ts'
import { recordKeys, renamed } from '../../../redis/keys.ts'
import { type ClusterConnection, searchLanes } from '../../../redis/lanes.ts'
import { evalCommand } from '../../../redis/script.ts'
import { RECORD_USE_SCRIPT } from '../../../redis/scripts.generated.ts'
import { type BanKey, listSubjectBans, observedBan } from '../../abuse/ban.ts'
import type { Principal } from '../../principal.ts'
import { deriveRevocationKeys, NOTHING_REVOCABLE } from '../../revocation/revocation.ts'
import { checkBinding } from '../../tokens/credential.ts'
import { readReference } from '../../tokens/redis/references.ts'
import { checkRecord, principalOfRecord, type ReferenceRecord } from '../../tokens/reference.ts'
import { parseStoredReference } from '../../tokens/reference-record.ts'
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
import { createRedisReferenceResolver } from './reference-resolver.ts'

/**
 * Creates `resolve` of an {@link AdmissionStore}. The record is in the lane of its subject, and issuers
 * draw secrets whose hash names this lane. So if all limits count the subject, one script in one lane
 * decides, as on one server. Otherwise the record is read first, and the query is divided into legs.
 *
 * A credential whose secret was not drawn costs another round. An isolate resolves a reference only until
 * it has cached it.
 */
export function createLaneResolver(
  connection: ClusterConnection,
  consult: AdmissionStore['consult'],
): AdmissionStore['resolve'] {
  const { keys, lanes } = connection
  const resolvers = new Map(lanes.all.map((lane) => [lane, createRedisReferenceResolver(lane)]))

  /** Resolves the reference with one script, which finds nothing but a record of this lane. */
  async function resolveIn(lane: RedisConnection, query: ReferenceQuery): Promise<ReferenceFacts> {
    const inLane = (name: string) => renamed(name, keys, lane.keys)
    const { addressBan, observedBan, credentialsBan, observedCredentialsBan } = query
    const resolve = resolvers.get(lane) ?? createRedisReferenceResolver(lane)
    const facts = await resolve({
      ...query,
      addressBan: inLane(addressBan),
      observedBan: observedBan && inLane(observedBan),
      credentialsBan: credentialsBan && inLane(credentialsBan),
      observedCredentialsBan: observedCredentialsBan && inLane(observedCredentialsBan),
    })
    const read = [...facts.read].map(
      ([name, value]) => [renamed(name, lane.keys, keys), value] as const,
    )
    return { ...facts, read: new Map(read) }
  }

  /** Whether there is a record, and it is not a copy that gateways of an earlier version may have left. */
  const isBelieved = (
    record: ReferenceRecord | undefined,
    lane: RedisConnection,
  ): record is ReferenceRecord =>
    record !== undefined &&
    !(lanes.credentialsInControl && record.kind === 'api_key' && lane !== connection)

  return async function resolve(query) {
    const { hash } = query.reference
    const isOneScript = query.limits.every(countsSubject)
    let unknown: ReferenceFacts | undefined
    const known = await searchLanes(connection, hash, async (lane) => {
      if (isOneScript && lane !== connection) {
        const facts = await resolveIn(lane, query)
        if (facts.record === undefined) unknown ??= facts
        return isBelieved(facts.record, lane) ? { record: facts.record, facts } : undefined
      }
      const text = await readReference(lane, hash)
      const record = text === undefined ? undefined : parseStoredReference(text)
      return isBelieved(record, lane) ? { record } : undefined
    })
    if (known === undefined) return unknown ?? resolveByLegs(connection, consult, query, undefined)
    const { record, facts } = known.found
    if (record.kind === 'api_key' && known.lane === connection)
      copyRecord(connection, query, record)
    // Only the lane of the subject has all that decides about it.
    if (facts !== undefined && known.lane === lanes.of(record.subject)) return facts
    return resolveByLegs(connection, consult, query, record)
  }
}

/** Whether a window is in the lane of the subject of the reference. */
const countsSubject = ({ window }: ReferenceLimit): boolean =>
  'by' in window && (window.by === 'subject' || window.by === 'key')

/** Decides with a record that was read: each window is in the lane of its party. */
async function resolveByLegs(
  connection: ClusterConnection,
  consult: AdmissionStore['consult'],
  query: ReferenceQuery,
  record: ReferenceRecord | undefined,
): Promise<ReferenceFacts> {
  const { keys } = connection
  const { reference, audience, thumbprint, nowMs, isReading } = query
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
    recordUse(connection.lanes.of(principal.subject), principal.key)
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

/** Copies the record of an API key to the lane of its hash, so that its next use finds it there. Not waited for. */
function copyRecord(
  connection: ClusterConnection,
  { reference: { hash }, isReading = false, nowMs }: ReferenceQuery,
  { subject }: ReferenceRecord,
): void {
  const { keys, lanes } = connection
  if (isReading || lanes.credentialsInControl || lanes.of(hash) !== lanes.of(subject)) return
  connection.broadcast
    ?.cache([{ key: keys.reference + hash, subject }], () => nowMs)
    .catch(() => {})
}

/** Records the use of an API key, at most once a minute. The request does not wait for it. */
function recordUse(lane: RedisConnection, id: string): void {
  const name = recordKeys(lane.keys).apiKeyUse + id
  lane.send([evalCommand(RECORD_USE_SCRIPT, [name], [])]).catch(() => undefined)
}
