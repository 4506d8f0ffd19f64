/** Offers requests at a rate that does not depend on how they are answered. */
import { createOpenClient, type OpenTarget } from './open-client.ts'
import { monotonicMs, type Pace, pace } from './pacer.ts'
import { createLatencyHistogram, type LatencyHistogram } from './statistics.ts'

const MICROS_PER_SECOND = 1_000_000
const MAX_OUTSTANDING = 256
const PATIENCE_MS = 1_000

/** How requests are offered. */
export interface Offer {
  readonly ratePerSecond: number
  readonly seconds: number
  /** Default `even`. */
  readonly spacing?: Pace['spacing']
  /** Requests under way at once, each on a connection of its own. Default 256. */
  readonly maxOutstanding?: number
  /** So long a request waits for one of them to end, and is given up then. Default 1,000. */
  readonly patienceMs?: number
  /** Counts answers with status 503 apart instead of refusing them. Default false. */
  readonly mayShed?: boolean
}

/** One target, and how it is asked. */
export type OpenLoad = OpenTarget & Offer

/** What came of an open load. */
export interface Offered {
  /** Requests that were due. Each was sent or given up, and each that was sent was answered. */
  readonly offered: number
  readonly sent: number
  readonly givenUp: number
  /** Answers that were right. */
  readonly right: number
  /** Answers with status 503, by the code of their problem; with `mayShed` only. */
  readonly shed: Readonly<Record<string, number>>
  /** From the first moment that one was due until the last answer. */
  readonly seconds: number
  /** Of right answers, from the moment when the request was due, not when it was sent. */
  readonly latencies: LatencyHistogram
  /**
   * From when a request was due until it was sent: what of a latency is the load's own, and, where all
   * connections were taken, what it waited for one.
   */
  readonly lateness: LatencyHistogram
  /** Cores that sending and looking took. Close to 1: this process was the bottleneck. */
  readonly loadCores: number
}

/** Throws if a single answer is wrong or does not come. */
export async function offer(load: OpenLoad): Promise<Offered> {
  return offerInTurn([load], load)
}

/**
 * Offers one load to several targets, each request to the next of them: whatever disturbs the
 * machine meets all of them alike. `each` are the latencies by target.
 */
export async function offerInTurn(
  targets: readonly OpenTarget[],
  load: Offer,
): Promise<Offered & { readonly each: readonly LatencyHistogram[] }> {
  const { ratePerSecond, seconds, spacing = 'even', patienceMs = PATIENCE_MS } = load
  const maxOutstanding = load.maxOutstanding ?? MAX_OUTSTANDING
  const client = createOpenClient({ ...load, targets, maxOutstanding })
  const each = targets.map(() => createLatencyHistogram())
  const lateness = createLatencyHistogram()
  const waiting: number[] = []
  let first = 0
  let [offered, sent, givenUp, outstanding] = [0, 0, 0, 0]
  let onIdle: (() => void) | undefined

  function send(dueMs: number): void {
    const target = sent++ % targets.length
    outstanding++
    lateness.record(monotonicMs() - dueMs)
    client.send(target, (isRight) => {
      if (isRight) each[target]?.record(monotonicMs() - dueMs)
      outstanding--
      sendWaiting()
      if (outstanding === 0) onIdle?.()
    })
  }

  /** What waits here found no connection free; that it is late is not the load's own doing. */
  function sendWaiting(): void {
    const oldestMs = monotonicMs() - patienceMs
    while (first < waiting.length) {
      const dueMs = waiting[first] as number
      if (dueMs < oldestMs) givenUp++
      else if (outstanding < maxOutstanding) send(dueMs)
      else break
      first++
    }
    // What has left the queue makes room once there is more of it than of what waits.
    if (first > waiting.length / 2) {
      waiting.splice(0, first)
      first = 0
    }
  }

  const cpu = process.cpuUsage()
  let startMs: number | undefined
  await pace({ ratePerSecond, seconds, spacing }, (due) => {
    startMs ??= due[0]
    offered += due.length
    for (const dueMs of due) {
      if (outstanding < maxOutstanding && first === waiting.length) send(dueMs)
      else waiting.push(dueMs)
    }
    sendWaiting()
  })
  if (outstanding > 0) await new Promise<void>((resolve) => (onIdle = resolve))
  const endMs = monotonicMs()
  const took = (endMs - (startMs ?? endMs)) / 1000
  const { user, system } = process.cpuUsage(cpu)
  const shed = client.close()
  const latencies = createLatencyHistogram()
  for (const one of each) latencies.add(one.counts())
  return {
    each,
    ...{ offered, sent, givenUp, right: latencies.count, shed, seconds: took, latencies, lateness },
    loadCores: (user + system) / MICROS_PER_SECOND / took,
  }
}
