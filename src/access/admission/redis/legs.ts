/**
 * The legs of an admission on a cluster: one for the lane of the caller, and one for each other lane
 * with a window of the request. Pure: no I/O, no clock. See docs/decisions/0118.
 */
import { Unavailable } from '../../../errors.ts'
import type { RedisConnection } from '../../../redis/connection.ts'
import type { ClusterConnection } from '../../../redis/lanes.ts'
import { NOTHING_REVOCABLE } from '../../revocation/revocation.ts'
import type { LimitRequest, RateLimit } from '../limit.ts'
import type { AdmissionFacts, AdmissionQuery } from '../store.ts'
import { passesUncounted } from '../verdict.ts'

/** One call to one lane. */
export interface Leg {
  readonly lane: RedisConnection
  /** What the lane is queried for. */
  readonly query: AdmissionQuery
  /** The places of its limits, revocation cutoffs and bans in the whole query. */
  readonly limits: readonly number[]
  readonly cutoffs: readonly number[]
  readonly bans: readonly number[]
}

/** What a leg has found; `Unavailable`: its lane did not answer. */
export type LegFacts = AdmissionFacts | Unavailable

type LimitState = RateLimit | Unavailable | undefined

/** The cutoffs that concern many subjects. Every lane has a copy of them. */
const BROAD: ReadonlySet<string> = new Set(['client', 'tenant'])

/**
 * Returns the lane of the caller if it alone answers the query, as one server would: most requests have no
 * limit that other subjects share. Undefined: the query has several legs, or nothing but limits.
 */
export function findOnlyLane(
  { lanes }: Pick<ClusterConnection, 'lanes'>,
  query: AdmissionQuery,
): RedisConnection | undefined {
  if (!checksAnything(query)) return undefined
  const { caller = '', limits } = query
  const own = lanes.of(caller)
  const isOwn = ({ owner = caller }: LimitRequest) => owner === caller || lanes.of(owner) === own
  return limits.every(isOwn) ? own : undefined
}

/**
 * Divides a query. The first leg is that of the caller, if there is anything to check: it checks
 * everything, uses the proof, and counts the windows of its lane. Each other leg counts the windows of
 * another lane. It also checks the cutoffs and bans that concern many subjects, so that a caller which one
 * of them refuses takes nothing there. A lane without a key of the query has no leg: no node runs a call
 * without a key.
 *
 * Does NOT divide the relation and the feed of the query.
 */
export function planLegs(
  { keys, lanes }: Pick<ClusterConnection, 'keys' | 'lanes'>,
  query: AdmissionQuery,
): readonly Leg[] {
  const { caller = '', revocation, bans, observedBans, proof, nowMs } = query
  const { isRenewal = false, isReading = false } = query
  const own = lanes.of(caller)
  const byLane = new Map<RedisConnection, number[]>()
  if (checksAnything(query)) byLane.set(own, [])
  for (const [place, { owner = caller }] of query.limits.entries()) {
    const lane = lanes.of(owner)
    const places = byLane.get(lane)
    if (places === undefined) byLane.set(lane, [place])
    else places.push(place)
  }
  const reportsTake = byLane.size > 1 && !isRenewal && !isReading
  const common = { isRenewal, isReading, nowMs, reportsTake, keyPrefix: keys.prefix }
  const cutoffs = placesOf(revocation.revokedBefore, ({ kind }) => BROAD.has(kind))
  const addresses = placesOf(bans, ({ by }) => by === 'address')

  return [...byLane].map(([lane, places]): Leg => {
    const limits = pick(query.limits, places)
    if (lane !== own)
      return {
        lane,
        limits: places,
        cutoffs,
        bans: addresses,
        query: {
          ...common,
          limits,
          revocation: {
            ...NOTHING_REVOCABLE,
            revokedBefore: pick(revocation.revokedBefore, cutoffs),
            issuedAtSeconds: revocation.issuedAtSeconds,
          },
          bans: pick(bans, addresses),
        },
      }
    return {
      lane,
      limits: places,
      cutoffs: [...revocation.revokedBefore.keys()],
      bans: [...bans.keys()],
      query: { ...common, limits, proof, revocation, bans, observedBans },
    }
  })
}

const checksAnything = ({ revocation, bans, observedBans = [], proof }: AdmissionQuery): boolean =>
  proof !== undefined ||
  revocation.token !== undefined ||
  revocation.revokedBefore.length + bans.length + observedBans.length > 0

/**
 * Joins the facts of the legs, in their order. A request is admitted by all legs or by none: if one
 * refuses, those that have taken units give them back, and report the units as they are then.
 */
export function joinLegs(query: AdmissionQuery, legs: readonly Leg[], found: readonly LegFacts[]) {
  const facts = joinChecks(query, legs, found)
  const states: LimitState[] = query.limits.map(() => undefined)
  for (const [index, leg] of legs.entries()) {
    const answer = found[index]
    for (const [at, place] of leg.limits.entries())
      states[place] = answer instanceof Unavailable ? answer : answer?.limits[at]
  }
  // The first leg is that of the caller, if there is anything to check.
  const [first] = found
  const failure = checksAnything(query) && first instanceof Unavailable ? first : undefined
  const isRefused = refuses(query, facts)
  const isAdmitted =
    failure === undefined &&
    !isRefused &&
    query.limits.every((request, place) => admits(request, states[place]))
  const refunds = legs.map((leg, index) =>
    isAdmitted ? NONE : takenBy(leg, found[index]).map((at) => leg.limits[at] ?? at),
  )
  for (const place of refunds.flat()) states[place] = returned(query.limits[place], states[place])
  return {
    // A refused request counts nothing. What an isolate has leased with it stays leased.
    facts: { ...facts, limits: isRefused ? states.map(onlyLeased) : states },
    /** The requests of each leg whose units another leg makes useless, in the order of the legs. */
    refunds: refunds.map((places) => pick(query.limits, places)),
    /** The lane of the caller did not answer. */
    failure,
  }
}

const NONE: readonly number[] = []

function joinChecks(
  query: AdmissionQuery,
  legs: readonly Leg[],
  found: readonly LegFacts[],
): AdmissionFacts {
  const revokedBeforeSeconds: (number | undefined)[] = []
  const bannedUntilSeconds: (number | undefined)[] = []
  let [tokenRevoked, proofUsed] = [false, false]
  let observedUntilSeconds: AdmissionFacts['observedUntilSeconds'] = []
  for (const [index, { cutoffs, bans }] of legs.entries()) {
    const facts = found[index]
    if (facts === undefined || facts instanceof Unavailable) continue
    // While a fact is written to the lanes one by one, the lanes differ: the later value applies.
    keepLatest(revokedBeforeSeconds, cutoffs, facts.revokedBeforeSeconds)
    keepLatest(bannedUntilSeconds, bans, facts.bannedUntilSeconds)
    tokenRevoked ||= facts.tokenRevoked
    proofUsed ||= facts.proofUsed
    if (facts.observedUntilSeconds.length > 0) observedUntilSeconds = facts.observedUntilSeconds
  }
  return {
    tokenRevoked,
    proofUsed,
    revokedBeforeSeconds,
    bannedUntilSeconds,
    observedUntilSeconds,
    limits: query.limits.map(() => undefined),
  }
}

function keepLatest(
  all: (number | undefined)[],
  places: readonly number[],
  some: readonly (number | undefined)[],
): void {
  for (const [at, place] of places.entries()) {
    const value = some[at]
    const before = all[place]
    if (value !== undefined && !(before !== undefined && before >= value)) all[place] = value
  }
}

/** Reports whether a script that finds these facts refuses the request before its limits. */
export function refuses({ revocation, nowMs }: AdmissionQuery, facts: AdmissionFacts): boolean {
  return (
    facts.tokenRevoked ||
    facts.proofUsed ||
    facts.revokedBeforeSeconds.some((at = -1) => revocation.issuedAtSeconds <= at) ||
    facts.bannedUntilSeconds.some((until = 0) => until * 1000 > nowMs)
  )
}

function admits(request: LimitRequest, state: LimitState): boolean {
  if (state === undefined) return false
  if (state instanceof Unavailable) return passesUncounted(request)
  return state.admitted || request.rule.mode === 'observe'
}

/** Returns the places, in the leg, of the limits from which its script has taken units. */
function takenBy({ query: { limits } }: Leg, facts: LegFacts | undefined): readonly number[] {
  if (facts === undefined || facts instanceof Unavailable) return NONE
  if (facts.takenMicros === undefined) return NONE
  if (!limits.every((request, at) => admits(request, facts.limits[at]))) return NONE
  return placesOf(limits, (_, at) => {
    const state = facts.limits[at]
    return (
      state !== undefined && !(state instanceof Unavailable) && state.admitted && state.limit > 0
    )
  })
}

const onlyLeased = (state: LimitState): LimitState =>
  state !== undefined && 'grant' in state ? state : undefined

/** Returns the state of a window whose units are given back. */
function returned(request: LimitRequest | undefined, state: LimitState): LimitState {
  if (state === undefined || state instanceof Unavailable) return state
  const { slot: _, ...rest } = state
  const remaining = Math.min(rest.limit, rest.remaining + (request?.rule.cost ?? 1))
  return { ...rest, remaining }
}

function placesOf<Item>(
  items: readonly Item[],
  isIncluded: (item: Item, place: number) => boolean,
): readonly number[] {
  return [...items.entries()].flatMap(([place, item]) => (isIncluded(item, place) ? [place] : []))
}

const pick = <Item>(items: readonly Item[], places: readonly number[]): readonly Item[] =>
  places.flatMap((place) => items.slice(place, place + 1))
