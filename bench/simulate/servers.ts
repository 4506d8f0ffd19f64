/**
 * The masters of a cluster on a virtual clock. A lane answers admission queries as the script does:
 * its windows and its feed are the specifications that the tests compare the scripts with.
 */

import type { LimitRequest, RateLimit } from '../../src/access/admission/limit.ts'
import { admitCommand } from '../../src/access/admission/redis/admit-script.ts'
import type {
  AdmissionFacts,
  AdmissionQuery,
  AdmissionStore,
} from '../../src/access/admission/store.ts'
import { MAX_FEED_CHANGES, MAX_FEED_ENTRIES } from '../../src/access/revocation/feed.ts'
import { Unavailable } from '../../src/errors.ts'
import { createKeys, type RedisKeys } from '../../src/redis/keys.ts'
import { laneTags } from '../../src/redis/lanes.ts'
import { createModel } from '../../test/access/admission/exact-model.ts'
import { createFeedModel } from '../../test/access/admission/feed-model.ts'
import type { Schedule } from './schedule.ts'

const MICROS_PER_MS = 1_000
const MICROS_PER_SECOND = 1_000_000
/** The name of a script in `EVALSHA`. */
const DIGEST = '0'.repeat(40)
/** Commands whose bytes are measured. */
const MEASURED = 2_000

/** Commands at one lane, by what they do. */
export interface LaneCounts {
  /** Admissions, one for each leg. */
  admissions: number
  /** Calls after a response that renew leases. */
  renewals: number
  /** Reads of the feed, with another command or alone. */
  feedReads: number
  /** Refunds of a leg, because another leg refused. */
  refunds: number
}

export interface Servers {
  readonly lanes: readonly Lane[]
  /** Bytes of an admission and its reply, on average. 0: there was none. */
  bytesPerAdmission(): number
  /** Commands that counted a window, by its key. A command with several windows counts for the first. */
  readonly byWindow: ReadonlyMap<string, number>
}

export interface Lane {
  readonly keys: RedisKeys
  readonly counts: LaneCounts
  /** The admission port of one process for callers of this lane. */
  store(): AdmissionStore
  /** Revokes the token with this key. */
  revoke(key: string): void
  /** Units that count in a window now. */
  unitsOf(limit: LimitRequest): number
}

export interface ServersOptions {
  readonly schedule: Schedule
  readonly count: number
  /** One way, in milliseconds. */
  readonly latencyMs: number
  /** Returns the number of the lane with this window. */
  readonly laneOfLimit: (key: string) => number | undefined
  /** Whether no server answers for this lane now. */
  readonly isDown: (lane: number) => boolean
}

type Window = ReturnType<typeof createModel>

export function createServers(options: ServersOptions): Servers {
  const { schedule, count, latencyMs, laneOfLimit, isDown } = options
  let measured = 0
  let bytes = 0
  const byWindow = new Map<string, number>()
  const nowMicros = () => Math.floor(schedule.now() * MICROS_PER_MS)

  const lanes = laneTags(count).map((tag, number) => {
    const keys = createKeys(count === 1 ? 'pc:' : `pc:{${tag}}:`)
    const windows = new Map<string, Window>()
    const feed = createFeedModel({ most: MAX_FEED_CHANGES, entries: MAX_FEED_ENTRIES })
    const counts: LaneCounts = { admissions: 0, renewals: 0, feedReads: 0, refunds: 0 }

    function windowOf({ key, rule: { limit, windowSeconds } }: LimitRequest): Window {
      let found = windows.get(key)
      if (found === undefined) {
        found = createModel({ limit, windowMicros: windowSeconds * MICROS_PER_SECOND })
        windows.set(key, found)
      }
      return found
    }

    return { number, keys, feed, counts, windowOf }
  })
  type Simulated = (typeof lanes)[number]

  interface Leg {
    readonly lane: Simulated
    readonly limits: readonly LimitRequest[]
  }

  /** Divides the limits among their lanes. The first leg is the caller's, with or without limits. */
  function legsOf(own: Simulated, limits: readonly LimitRequest[]): readonly Leg[] {
    const byLane = new Map<Simulated, LimitRequest[]>([[own, []]])
    for (const limit of limits) {
      const lane = lanes[laneOfLimit(limit.key) ?? own.number] ?? own
      byLane.set(lane, [...(byLane.get(lane) ?? []), limit])
    }
    return [...byLane].map(([lane, its]) => ({ lane, limits: its }))
  }

  /** Answers all legs of a call, at the moment when they arrive. */
  function answer(own: Simulated, legs: readonly Leg[], query: AdmissionQuery): AdmissionFacts {
    const feed = query.since && own.feed.since(query.since)
    const { token } = query.revocation
    const tokenRevoked = token !== undefined && own.feed.revokedSinceMs(token) !== undefined
    const isRenewal = query.isRenewal === true
    for (const [index, { lane, limits }] of legs.entries()) {
      if (isRenewal) lane.counts.renewals += limits.length > 0 ? 1 : 0
      else lane.counts.admissions += 1
      const key = limits[0]?.key
      if (key !== undefined) byWindow.set(key, (byWindow.get(key) ?? 0) + 1)
      if (index === 0 && feed !== undefined) lane.counts.feedReads += 1
    }
    const now = nowMicros()
    const costOf = ({ rule }: LimitRequest) => (isRenewal ? 0 : (rule.cost ?? 1))
    const hasRoom = ({ lane, limits }: Leg) =>
      limits.every((limit) => lane.windowOf(limit).admit(now, 0).left >= costOf(limit))
    const room = legs.map(hasRoom)
    const holds = !tokenRevoked && room.every((has) => has)
    // A leg that took and is refunded is as before. What it holds in between is not simulated.
    for (const [index, { lane, limits }] of legs.entries())
      if (!holds && limits.length > 0 && legs.length > 1 && room[index] === true)
        lane.counts.refunds += 1
    const states = new Map<LimitRequest, RateLimit>()
    for (const { lane, limits } of tokenRevoked ? [] : legs)
      for (const limit of limits) states.set(limit, stateOf(lane.windowOf(limit), limit, holds))
    return {
      tokenRevoked,
      revokedBeforeSeconds: [],
      bannedUntilSeconds: [],
      observedUntilSeconds: [],
      proofUsed: false,
      limits: query.limits.map((limit) => states.get(limit)),
      ...(feed && { feed }),
    }

    function stateOf(window: Window, limit: LimitRequest, takes: boolean): RateLimit {
      const { rule, leaseRequest } = limit
      const cost = costOf(limit)
      const ahead = takes &&
        leaseRequest && {
          ...leaseRequest,
          holdMicros: leaseRequest.holdMs * MICROS_PER_MS,
        }
      const fits = window.admit(now, 0).left >= cost
      const { left, waitMs, grant } = window.admit(
        now,
        takes || !fits ? cost : 0,
        ahead || undefined,
      )
      return {
        rule,
        limit: rule.limit,
        remaining: left,
        resetMs: query.nowMs + waitMs,
        admitted: fits,
        ...(leaseRequest && { grant }),
      }
    }
  }

  function measure(keys: RedisKeys, query: AdmissionQuery, facts: AdmissionFacts): void {
    if (measured === MEASURED || query.limits.length === 0) return
    measured += 1
    bytes +=
      sizeOf(admitCommand(DIGEST, keys, query)) + sizeOf([0, 0, ...facts.limits.flatMap(replied)])
  }

  const port = (own: Simulated): AdmissionStore => ({
    keys: own.keys,
    async consult(query) {
      const legs = legsOf(own, query.limits)
      await schedule.sleep(latencyMs)
      if (legs.some(({ lane }) => isDown(lane.number)))
        throw new Unavailable('redis', 'unreachable')
      const facts = answer(own, legs, query)
      measure(own.keys, query, facts)
      await schedule.sleep(latencyMs)
      return facts
    },
    async resolve() {
      throw new Unavailable('redis', 'malformed')
    },
    async read() {
      throw new Unavailable('redis', 'malformed')
    },
  })

  return {
    lanes: lanes.map((lane) => ({
      keys: lane.keys,
      counts: lane.counts,
      store: () => port(lane),
      revoke: (key) => lane.feed.write(key, schedule.now()),
      unitsOf: (limit) => limit.rule.limit - lane.windowOf(limit).admit(nowMicros(), 0).left,
    })),
    byWindow,
    bytesPerAdmission: () => (measured === 0 ? 0 : bytes / measured),
  }
}

function replied(state: AdmissionFacts['limits'][number]): readonly number[] {
  if (state === undefined || state instanceof Unavailable) return []
  const { limit, remaining, resetMs, grant } = state
  return [
    limit,
    remaining,
    Math.ceil(resetMs % MICROS_PER_SECOND),
    ...(grant ? [grant.units, grant.endMicros] : []),
  ]
}

/** Returns the bytes of an array in the protocol of Redis. */
function sizeOf(parts: readonly (string | number)[]): number {
  let size = `*${parts.length}\r\n`.length
  for (const part of parts) {
    const text = String(part)
    size +=
      typeof part === 'number' && parts[0] === 0
        ? `:${text}\r\n`.length
        : `$${text.length}\r\n${text}\r\n`.length
  }
  return size
}
