/** Attributes the time of the slowest requests that no fault affected. */
import { rounded, sumOf } from '../measure/statistics.ts'
import type { AuditTimes } from './audit.ts'
import type { Pause } from './pauses.ts'

/** The times of one request at the load, in milliseconds since the epoch. */
export interface Trace {
  readonly requestId: string
  readonly gateway: number
  readonly dueMs: number
  readonly sentMs: number
  readonly answeredMs: number
}

const MS_PER_SECOND = 1_000
const SHARES = [0.001, 0.01] as const
/** More than 1 % of a soak of ten minutes. */
const MAX_KEPT = 10_000

const lengthOf = ({ dueMs, answeredMs }: Pick<Trace, 'dueMs' | 'answeredMs'>): number =>
  answeredMs - dueMs

/** Keeps the slowest requests. */
export function createSlowest() {
  let kept: Trace[] = []
  let count = 0
  let leastMs = 0
  function sort(): readonly Trace[] {
    kept = kept.toSorted((one, other) => lengthOf(other) - lengthOf(one)).slice(0, MAX_KEPT)
    return kept
  }
  return {
    /** Discards earlier requests. */
    begin(): void {
      ;[kept, count, leastMs] = [[], 0, 0]
    },
    record(trace: Trace): void {
      count++
      if (lengthOf(trace) >= leastMs) kept.push(trace)
      if (kept.length >= 2 * MAX_KEPT) leastMs = lengthOf(sort().at(-1) as Trace)
    },
    /** Returns the slowest 1 %, the slowest one first, and how many these are for each share. */
    slowest: () => ({ traces: sort(), counts: SHARES.map((share) => Math.ceil(count * share)) }),
  }
}

/** The pauses of the load, and of each gateway. On workerd the latter are not known. */
export interface Paused {
  readonly load: readonly Pause[]
  readonly gateways: readonly (readonly Pause[])[]
}

/**
 * Returns where the time of the slowest 0.1 % and 1 % was: means in milliseconds. The parts follow each other.
 * `meanwhile` has the same time again, as far as an event loop was late.
 */
export function attribute(
  { traces, counts }: ReturnType<ReturnType<typeof createSlowest>['slowest']>,
  times: ReadonlyMap<string, AuditTimes>,
  paused: Paused,
  startMs: number,
) {
  return SHARES.map((share, index) => {
    const known = traces.slice(0, counts[index]).flatMap((trace) => {
      const event = times.get(trace.requestId)
      return event === undefined ? [] : [{ trace, parts: partsOf(trace, event) }]
    })
    const parts = known.map((one) => one.parts)
    return {
      share,
      /** Number of those with an audit event. */
      requests: known.length,
      leastMs: rounded(lengthOf(known.at(-1)?.trace ?? { dueMs: 0, answeredMs: 0 }), 1),
      parts: meansOf(parts),
      /** Number of requests by their longest part. */
      longest: Object.fromEntries(
        [...Map.groupBy(parts, longestOf)].map(([name, { length }]) => [name, length]),
      ),
      meanwhile: meansOf(known.map(({ trace }) => meanwhileOf(trace, paused))),
      /** Pairs of a second of the load and how many of these requests it has. */
      seconds: [
        ...Map.groupBy(known, ({ trace }) => Math.floor((trace.dueMs - startMs) / MS_PER_SECOND)),
      ]
        .map(([second, { length }]) => [second, length] as const)
        .toSorted(([one], [other]) => one - other),
    }
  })
}

export type Slowest = ReturnType<typeof attribute>

function partsOf(trace: Trace, { endMs, durationsMs }: AuditTimes): Record<string, number> {
  const stages = Object.entries(durationsMs)
  return {
    'late at the load': trace.sentMs - trace.dueMs,
    'before the first stage': endMs - sumOf(stages, ([, ms]) => ms) - trace.sentMs,
    ...Object.fromEntries(stages.map(([stage, ms]) => [`stage ${stage}`, ms])),
    'after the last stage': trace.answeredMs - endMs,
  }
}

const longestOf = (parts: Readonly<Record<string, number>>): string =>
  Object.keys(parts).reduce((one, other) => ((parts[other] ?? 0) > (parts[one] ?? 0) ? other : one))

const meanwhileOf = (trace: Trace, { load, gateways }: Paused) => ({
  ...latenessOf('gateway', gateways[trace.gateway] ?? [], trace),
  ...latenessOf('load', load, trace),
})

function latenessOf(who: string, pauses: readonly Pause[], { dueMs, answeredMs }: Trace) {
  let [ms, cpu, collecting] = [0, 0, 0]
  for (const [kind, startMs, lengthMs, cpuMs] of pauses) {
    const both = Math.min(answeredMs, startMs + lengthMs) - Math.max(dueMs, startMs)
    if (both <= 0) continue
    if (kind === 'collection') collecting += both
    else {
      ms += both
      cpu += both * Math.min(1, cpuMs / lengthMs)
    }
  }
  return {
    [`${who} computes`]: Math.max(0, cpu - collecting),
    [`${who} collects garbage`]: collecting,
    [`${who} waits for a core`]: ms - cpu,
  }
}

function meansOf(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const names = new Set(all.flatMap((one) => Object.keys(one)))
  const mean = (name: string) => rounded(sumOf(all, (one) => one[name] ?? 0) / all.length, 1)
  return Object.fromEntries([...names].map((name) => [name, mean(name)]))
}
