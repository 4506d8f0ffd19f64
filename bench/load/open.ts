/** Offers requests at a rate that does not depend on the responses. */
import { createLatencies, type Latencies } from '../measure/statistics.ts'
import { createOpenClient, type OpenTarget } from './open-client.ts'
import { monotonicMs, type Pace, pace } from './pacer.ts'

const MICROS_PER_SECOND = 1_000_000
const MAX_OUTSTANDING = 256
const PATIENCE_MS = 1_000

export type { OpenTarget }

export interface Offer {
  readonly ratePerSecond: number
  readonly seconds: number
  /** Default `even`. */
  readonly spacing?: Pace['spacing']
  /** Maximum number of concurrent requests, each on its own connection. Default 256. */
  readonly maxOutstanding?: number
  /** How long a request waits for a free connection before it is given up. Default 1,000. */
  readonly patienceMs?: number
  /** Counts 503 responses separately instead of failing. Default false. */
  readonly mayShed?: boolean
}

export type OpenLoad = OpenTarget & Offer

export interface Offered {
  /** Requests that were due. Each was sent or given up; each sent request has a response. */
  readonly offered: number
  readonly sent: number
  readonly givenUp: number
  /** Number of correct responses. */
  readonly right: number
  /** 503 responses, by problem code; only with `mayShed`. */
  readonly shed: Readonly<Record<string, number>>
  /** Time from the first due time to the last response. */
  readonly seconds: number
  /** Latencies of correct responses, from the time when the request was due. */
  readonly latencies: Latencies
  /** Time from the due time of a request until it was sent, the part that the load causes. */
  readonly lateness: Latencies
  /** Cores used by this process. Close to 1: it was the bottleneck. */
  readonly loadCores: number
}

/** Offers the load. Throws if a response is wrong or missing. */
export async function offer(load: OpenLoad): Promise<Offered> {
  const { each: _, ...offered } = await offerInTurn([load], load)
  return offered
}

/**
 * Offers one load to several targets, each request to the next target. So disturbances of the
 * machine affect all targets equally. `each` contains the latencies by target.
 */
export async function offerInTurn(
  targets: readonly OpenTarget[],
  load: Offer,
): Promise<Offered & { readonly each: readonly Latencies[] }> {
  const { ratePerSecond, seconds, spacing = 'even', patienceMs = PATIENCE_MS } = load
  const maxOutstanding = load.maxOutstanding ?? MAX_OUTSTANDING
  const client = createOpenClient({ ...load, targets, maxOutstanding })
  const each = targets.map(() => createLatencies())
  const lateness = createLatencies()
  const waiting: number[] = []
  let first = 0
  let [offered, sent, givenUp, outstanding] = [0, 0, 0, 0]
  let onIdle: (() => void) | undefined

  function send(dueMs: number): void {
    const target = sent++ % targets.length
    outstanding++
    lateness.record(monotonicMs() - dueMs)
    void client.send(target).then((isRight) => {
      if (isRight) each[target]?.record(monotonicMs() - dueMs)
      outstanding--
      sendWaiting()
      if (outstanding === 0) onIdle?.()
    })
  }

  /** Sends requests that found no free connection. This delay is not caused by the load process. */
  function sendWaiting(): void {
    const oldestMs = monotonicMs() - patienceMs
    while (first < waiting.length) {
      const dueMs = waiting[first] as number
      if (dueMs < oldestMs) givenUp++
      else if (outstanding < maxOutstanding) send(dueMs)
      else break
      first++
    }
    // Removes sent requests from the array when they are more than half of it.
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
  const latencies = createLatencies()
  for (const one of each) latencies.add(one.values())
  return {
    each,
    offered,
    sent,
    givenUp,
    right: latencies.count,
    shed,
    seconds: took,
    latencies,
    lateness,
    loadCores: (user + system) / MICROS_PER_SECOND / took,
  }
}
