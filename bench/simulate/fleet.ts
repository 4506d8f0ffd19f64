/** One run: gateways with the real admission decision, callers, servers, and what is counted. */

import { seededRandom } from '../../dev/fault-proxy/random.ts'
import { type Admission, createAdmission } from '../../src/access/admission/admission.ts'
import type { LimitRequest, LimitRule } from '../../src/access/admission/limit.ts'
import { limitKeyOf } from '../../src/access/admission/limit-key.ts'
import { type LocalTally, newLocalTally } from '../../src/access/admission/local-admission.ts'
import type { Principal } from '../../src/access/principal.ts'
import { Unavailable } from '../../src/errors.ts'
import { laneIndex } from '../../src/redis/lanes.ts'
import { sumOf } from '../measure/statistics.ts'
import type { FleetOptions, KindCounts, Second } from './experiment.ts'
import { createSchedule } from './schedule.ts'
import { createServers, type LaneCounts } from './servers.ts'
import { type Caller, ISSUER, type Kind, principalOf, sampleOf } from './traffic.ts'
import { type Admitted, fullest, saturation } from './windows.ts'

const START_MS = 1_000_000_000_000
/** Entries of the caches of one process for one lane. The sample has few callers for each. */
const CACHE_SIZE = 64
const REVOKE_EVERY_MS = 500
/** Of these callers one after the other is revoked. */
const THIRD = 3
/** Other callers keep the view of a lane fresh: this many of their requests in a bound are enough. */
const BESIDE_PER_BOUND = 8

/** The decision of a process for the callers of one lane. */
interface Decider {
  readonly admission: Admission
  readonly tally: LocalTally
  /** Requests of other callers that it admitted without a call. They are not part of the sample. */
  beside: number
  /** When it began and ended, in milliseconds since the counted time began. */
  readonly fromMs: number
  untilMs: number
}

interface Process {
  readonly gateway: number
  /** By lane. */
  readonly admissions: Map<number, Decider>
  /** Increases when the process is replaced. */
  life: number
}

interface Live {
  readonly caller: Caller
  readonly lane: number
  readonly limits: readonly LimitRequest[]
  readonly address: string
  principal: Principal
  logins: number
  /** When the revocation of the present token returned. */
  revokedMs: number | undefined
  /** When requests were admitted, in milliseconds. */
  readonly admittedMs: number[]
}

export type FleetCounts = Readonly<Awaited<ReturnType<typeof runFleet>>>

/** Runs the sample on a virtual clock. */
export async function runFleet(options: FleetOptions) {
  const { lanes: count, masters, latencyMs, maxStalenessMs, outage, warmUpSeconds } = options
  const random = seededRandom(options.seed)
  const schedule = createSchedule(START_MS)
  const countsFromMs = START_MS + warmUpSeconds * 1000
  const endMs = countsFromMs + options.seconds * 1000
  const elapsedMs = () => schedule.now() - countsFromMs
  const within = (fromMs: number, forMs: number) =>
    elapsedMs() >= fromMs && elapsedMs() < fromMs + forMs
  const masterOf = (lane: number) => Math.floor(((lane + 0.5) * masters) / count)
  const isLost = (index: number, all: number) => index < Math.ceil(all / THIRD)

  const lanesOfLimits = new Map<string, number>()
  const servers = createServers({
    schedule,
    count,
    latencyMs,
    laneOfLimit: (key) => lanesOfLimits.get(key),
    isDown: (lane) =>
      outage !== undefined &&
      within(outage.atMs, outage.failoverMs) &&
      isLost(masterOf(lane), masters),
  })
  const processes = Array.from(
    { length: options.gateways * options.processes },
    (_, index): Process => ({
      gateway: Math.floor(index / options.processes),
      admissions: new Map(),
      life: 0,
    }),
  )
  const isGone = ({ gateway }: Process) =>
    outage !== undefined && within(outage.atMs, outage.forMs) && isLost(gateway, options.gateways)

  const survivors = processes.filter(({ gateway }) => !isLost(gateway, options.gateways))

  const hasTenants = options.limits.some(({ by }) => by === 'tenant')
  const sample = sampleOf(options.kinds, options.sampleRate, hasTenants, random)
  const live: Live[] = []
  for (const [index, caller] of sample.entries()) live.push(await begin(caller, index))

  async function begin(caller: Caller, index: number): Promise<Live> {
    const { subject, tenant } = caller
    const lane = laneIndex(subject, count)
    const limits: LimitRequest[] = []
    for (const { by, limit, windowSeconds } of options.limits) {
      const lease = options.lease && { lease: options.lease }
      const rule: LimitRule = { name: by, limit, windowSeconds, onUnavailable: 'deny', ...lease }
      const value = by === 'subject' ? subject : (tenant ?? '')
      const key = await limitKeyOf({ name: by, by }, { issuer: ISSUER, value, tenant })
      lanesOfLimits.set(key, laneIndex(value, count))
      limits.push({ rule, key })
    }
    return {
      ...{ caller, lane, limits, logins: 0, revokedMs: undefined, admittedMs: [] },
      address: `2001:db8::${index.toString(16)}`,
      principal: principalOf(subject, tenant, 0),
    }
  }

  const deciders: Decider[] = []

  /** Returns the decision of a process for one lane. The first use creates it. */
  function deciderAt(process: Process, lane: number): Decider | undefined {
    const found = process.admissions.get(lane)
    if (found !== undefined) return found
    const store = servers.lanes[lane]?.store()
    if (store === undefined) return undefined
    const tally = newLocalTally()
    const now = () => Math.floor(schedule.now())
    const admission = createAdmission({
      ...{ store, now, maxStalenessMs, local: tally },
      cacheSize: CACHE_SIZE,
    })
    const decider: Decider = {
      ...{ admission, tally, beside: 0 },
      ...{ fromMs: elapsedMs(), untilMs: Number.POSITIVE_INFINITY },
    }
    deciders.push(decider)
    process.admissions.set(lane, decider)
    if (maxStalenessMs > 0) keepFresh(process, decider)
    return decider
  }

  /** Sends the requests of other callers of a lane to a process, which keep its view fresh. */
  function keepFresh(process: Process, decider: Decider): void {
    const { life } = process
    const principal = principalOf('beside', undefined, 0)
    const others = options.rate - options.sampleRate
    if (others <= 0) return
    const everyMs = Math.max(
      (1000 * processes.length * count) / others,
      maxStalenessMs / BESIDE_PER_BOUND,
    )
    const step = () => {
      if (process.life !== life) return
      schedule.start(async () => {
        const before = decider.tally.admitted
        const decided = decider.admission.admit({ principal, address: '192.0.2.1', limits: [] })
        // A local admission ends before the function returns.
        decider.beside += decider.tally.admitted - before
        const verdict = await decided.catch(() => undefined)
        await verdict?.renewal?.()
      })
      schedule.at(schedule.now() + everyMs, step)
    }
    schedule.at(schedule.now() + random() * everyMs, step)
  }

  const byKind = new Map<Kind['id'], KindCounts>()
  const countsOf = ({ id }: Kind): KindCounts => {
    const counts = byKind.get(id) ?? {
      ...{ requests: 0, admitted: 0, limited: 0, revoked: 0, unavailable: 0, commands: 0 },
    }
    byKind.set(id, counts)
    return counts
  }
  const seconds = Array.from(
    { length: Math.ceil(options.seconds) },
    (): Second => ({ requests: 0, admitted: 0, limited: 0, unavailable: 0, calls: 0, idle: 0 }),
  )
  let [worstStalenessMs, lateAdmissions, revocations] = [0, 0, 0]
  const callsNow = () =>
    servers.lanes.reduce(
      (sum, { counts }) => sum + counts.admissions + counts.renewals + counts.refunds,
      0,
    )

  /** Returns the process that serves a caller now: one of its connections, if that still exists. */
  function processOf({ places }: Caller): Process | undefined {
    const place = places[Math.floor(random() * places.length)] ?? 0
    const chosen = processes[Math.floor(place * processes.length)]
    if (chosen === undefined || !isGone(chosen)) return chosen
    return survivors[Math.floor(place * survivors.length)]
  }

  async function request(each: Live): Promise<void> {
    const { caller, lane, limits, address, principal, revokedMs } = each
    const process = processOf(caller)
    const decider = process && deciderAt(process, lane)
    if (decider === undefined) return
    const startedMs = schedule.now()
    if (process !== undefined)
      options.onRequest?.(caller, processes.indexOf(process), startedMs - START_MS)
    const isCounted = elapsedMs() >= 0
    const second = isCounted ? seconds[Math.floor(elapsedMs() / 1000)] : undefined
    const kind = isCounted ? countsOf(caller.kind) : undefined
    const add = (name: 'requests' | 'admitted' | 'limited' | 'unavailable') => {
      if (second !== undefined) second[name] += 1
      if (kind !== undefined) kind[name] += 1
    }
    add('requests')
    try {
      const verdict = await decider.admission.admit({ principal, address, limits })
      if (verdict.denial === undefined) {
        add('admitted')
        each.admittedMs.push(schedule.now())
        if (revokedMs !== undefined) {
          lateAdmissions += 1
          worstStalenessMs = Math.max(worstStalenessMs, startedMs - revokedMs)
        }
      } else if (verdict.denial.code === 'rate_limited') add('limited')
      else if (kind !== undefined) kind.revoked += 1
      await verdict.renewal?.()
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      add('unavailable')
    }
  }

  /** Plans the requests of one caller, at random times. */
  function arrive(each: Live): void {
    const gapMs = (-Math.log(1 - random()) * 1000) / each.caller.kind.rate
    schedule.at(schedule.now() + gapMs, () => {
      arrive(each)
      schedule.start(() => request(each))
    })
  }
  for (const each of live) arrive(each)

  /** Revokes the token of one service after the other. Each signs in again later. */
  const revocable = live.filter(({ caller }) => caller.kind.id === 'services')
  function revokeNext(index: number): void {
    const each = revocable[index % revocable.length]
    schedule.at(schedule.now() + REVOKE_EVERY_MS, () => revokeNext(index + 1))
    if (each === undefined || each.revokedMs !== undefined || elapsedMs() < 0) return
    const lane = servers.lanes[each.lane]
    const { tokenIdHash } = each.principal
    if (lane === undefined || tokenIdHash === undefined) return
    revocations += 1
    lane.revoke(lane.keys.revokedToken + tokenIdHash)
    schedule.at(schedule.now() + latencyMs, () => {
      each.revokedMs = schedule.now()
    })
    schedule.at(schedule.now() + 2 * maxStalenessMs + REVOKE_EVERY_MS, () => {
      each.logins += 1
      each.principal = principalOf(each.caller.subject, each.caller.tenant, each.logins)
      each.revokedMs = undefined
    })
  }
  if (options.revokes) revokeNext(0)

  if (outage !== undefined)
    schedule.at(countsFromMs + outage.atMs, () => {
      for (const process of processes) {
        if (!isLost(process.gateway, options.gateways)) continue
        for (const decider of process.admissions.values()) decider.untilMs = elapsedMs()
        process.admissions.clear()
        process.life += 1
      }
    })

  const services = live.filter(({ caller }) => caller.kind.id === 'services')
  /** Units that count and that no request used: the most of any service and second, as a part of the limit. */
  let worstIdle = 0
  /** Returns the units of a caller that count and that no request used, as a part of the limit. */
  function idleOf({ lane, limits, admittedMs }: Live): number {
    const [limit] = limits
    const units = limit && servers.lanes[lane]?.unitsOf(limit)
    if (limit === undefined || units === undefined) return 0
    const fromMs = schedule.now() - limit.rule.windowSeconds * 1000
    const used = admittedMs.length - 1 - admittedMs.findLastIndex((atMs) => atMs <= fromMs)
    return Math.max(0, units - used) / limit.rule.limit
  }
  for (const [at, second] of seconds.entries())
    schedule.at(countsFromMs + at * 1000, () => {
      const started = callsNow()
      schedule.at(countsFromMs + (at + 1) * 1000 - 1, () => {
        second.calls = callsNow() - started
        const idle = services.map(idleOf)
        second.idle = idle.reduce((sum, one) => sum + one, 0) / Math.max(1, idle.length)
        worstIdle = Math.max(worstIdle, ...idle)
      })
    })
  const atStart: LaneCounts[] = []
  let windowsAtStart: ReadonlyMap<string, number> = new Map()
  schedule.at(countsFromMs, () => {
    for (const { counts } of servers.lanes) atStart.push({ ...counts })
    windowsAtStart = new Map(servers.byWindow)
  })
  await schedule.run(endMs)

  const byLane = servers.lanes.map(({ counts }, lane) => difference(counts, atStart[lane]))
  for (const { caller, limits } of live) {
    const key = limits[0]?.key ?? ''
    countsOf(caller.kind).commands +=
      (servers.byWindow.get(key) ?? 0) - (windowsAtStart.get(key) ?? 0)
  }
  const commands = {
    admissions: sumOf(byLane, (each) => each.admissions),
    renewals: sumOf(byLane, (each) => each.renewals),
    feedReads: sumOf(byLane, (each) => each.feedReads),
    refunds: sumOf(byLane, (each) => each.refunds),
  }
  const viewMs = sumOf(deciders, ({ fromMs, untilMs }) =>
    Math.max(0, Math.min(untilMs, options.seconds * 1000) - Math.max(fromMs, 0)),
  )
  const windows = windowsOf(live)
  const greedy = live
    .filter(({ caller }) => caller.kind.id === 'greedy')
    .flatMap(({ limits, admittedMs }) => admittedOf(limits[0], admittedMs))
  return {
    sampledRate: sumOf(sample, ({ kind }) => kind.rate),
    callers: sample.length,
    byKind,
    /** Of the sample: at all lanes, and by lane. */
    ...{ commands, byLane, seconds, revocations },
    /** The latest start of an admitted request, in milliseconds after the revocation returned. */
    ...{ worstStalenessMs, lateAdmissions },
    /** Reads of the feed of one lane by one process, a second. */
    feedReadsPerView: viewMs === 0 ? 0 : (commands.feedReads * 1000) / viewMs,
    /** Units that count in the windows of callers at the end. */
    units: sumOf(live, ({ lane, limits: [limit] }) =>
      limit === undefined ? 0 : (servers.lanes[lane]?.unitsOf(limit) ?? 0),
    ),
    bytesPerAdmission: servers.bytesPerAdmission(),
    /** The most units of a window of its length, as a part of the limit. */
    worstWindow: Math.max(...windows.map(fullest)),
    /** Units of callers above their limit, as a part of what their limits allow. */
    saturation:
      sumOf(greedy, (each) => saturation(each, countsFromMs, endMs)) / Math.max(1, greedy.length),
    /** Units that were leased, from the start on; of these, those that requests used and those that were given back. */
    granted: sumOf(deciders, ({ tally }) => tally.granted),
    spent: sumOf(deciders, ({ tally, beside }) => tally.admitted - beside),
    returned: sumOf(deciders, ({ tally }) => tally.returned),
    worstIdle,
  }
}

const difference = (now: LaneCounts, then: LaneCounts | undefined): LaneCounts => ({
  admissions: now.admissions - (then?.admissions ?? 0),
  renewals: now.renewals - (then?.renewals ?? 0),
  feedReads: now.feedReads - (then?.feedReads ?? 0),
  refunds: now.refunds - (then?.refunds ?? 0),
})

const admittedOf = (limit: LimitRequest | undefined, timesMs: readonly number[]): Admitted[] =>
  limit === undefined
    ? []
    : [{ timesMs, limit: limit.rule.limit, windowSeconds: limit.rule.windowSeconds }]

/** Returns the windows of all limits, with what each admitted in the order of time. */
function windowsOf(live: readonly Live[]): readonly Admitted[] {
  const timesByWindow = new Map<LimitRequest['key'], number[]>()
  const limitsByKey = new Map<LimitRequest['key'], LimitRequest>()
  for (const { limits, admittedMs } of live)
    for (const limit of limits) {
      const times = timesByWindow.get(limit.key) ?? []
      for (const atMs of admittedMs) times.push(atMs)
      timesByWindow.set(limit.key, times)
      limitsByKey.set(limit.key, limit)
    }
  return [...timesByWindow].flatMap(([key, times]) =>
    admittedOf(
      limitsByKey.get(key),
      times.sort((one, other) => one - other),
    ),
  )
}
