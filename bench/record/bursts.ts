/** Sends bursts at the boundaries of windows, and continuous overload, without faults. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type HistoryEvent, historyOf, type RequestEvent } from '../chaos/history.ts'
import { rounded } from '../measure/statistics.ts'
import { offerLoad, type Wallet } from './load.ts'
import type { Recorder } from './recorder.ts'
import { LIMITS, type LimitName, PROCESSES } from './terms.ts'

/** Size of a burst as a multiple of the limit, and its distance before and after each boundary. */
const BURST_TIMES = 1.5
const ASIDE_MS = 100
/** Maximum concurrency: more requests would wait for each other instead of the limit. */
const AT_ONCE = 15
const BREATH_MS = 5
/** Continuous load, as multiples of the limit. */
const OVERLOADS = [1.2, 2] as const

const NAMES = ['leased', 'strict'] as const satisfies readonly LimitName[]
const overloadedSubject = (name: LimitName, times: number) => `overload-${times}-${name}`
const burstSubject = (name: LimitName) => `boundary-${name}`

const OVERLOADED = NAMES.flatMap((name) =>
  OVERLOADS.map((times) => ({
    name,
    times,
    subject: overloadedSubject(name, times),
    perSecond: (times * LIMITS[name].limit * 1_000) / LIMITS[name].windowMs,
  })),
)

export const BURST_SUBJECTS: readonly string[] = [
  ...NAMES.map(burstSubject),
  ...OVERLOADED.map(({ subject }) => subject),
]

export interface BurstOptions {
  readonly seconds: number
  readonly seed: number
  readonly signal: AbortSignal
}

/** Sends the load, half of the time for each limit. Windows start with the epoch. */
export async function burst(
  recorder: Recorder,
  wallet: Wallet,
  { seconds, seed, signal }: BurstOptions,
): Promise<void> {
  const partMs = (seconds * 1_000) / NAMES.length

  async function atBoundaries(name: LimitName): Promise<void> {
    const { limit, windowMs } = LIMITS[name]
    const token = wallet.tokenOf(burstSubject(name))
    const untilMs = Date.now() + partMs
    for (let at = Math.ceil(Date.now() / windowMs) * windowMs; at < untilMs; at += windowMs) {
      for (const momentMs of [at - ASIDE_MS, at + ASIDE_MS]) {
        await sleep(Math.max(0, momentMs - Date.now()), undefined, { signal })
        for (let n = 0; n < BURST_TIMES * limit; n++) {
          if (n % AT_ONCE === AT_ONCE - 1) await sleep(BREATH_MS)
          if (token !== undefined) void recorder.request(n % PROCESSES, name, token)
        }
      }
    }
  }

  for (const name of NAMES) {
    const callers = OVERLOADED.filter((one) => one.name === name).map(({ subject, perSecond }) => ({
      route: name,
      subject,
      perSecond,
    }))
    const ending = AbortSignal.any([signal, AbortSignal.timeout(partMs)])
    await Promise.all([
      offerLoad(recorder, wallet, { callers, seed, signal: ending }),
      atBoundaries(name),
    ])
    await recorder.settled()
  }
}

export type OverloadFigures = ReturnType<typeof overloadFigures>[number]

/** Computes the figures for consecutive windows. Requests count by their time of sending. */
export function overloadFigures(events: Iterable<HistoryEvent>) {
  const { requests } = historyOf(events)
  return OVERLOADED.map(({ name, times, subject }) => {
    const own = requests.filter((request) => request.subject === subject)
    const { limit, windowMs } = LIMITS[name]
    const shares = admittedByWindow(own, windowMs).map((admitted) => admitted / limit)
    const sum = shares.reduce((all, share) => all + share, 0)
    const figure = (share: number) => (shares.length === 0 ? null : rounded(share, 3))
    return {
      limit: name,
      times,
      requests: own.length,
      /** Number of 503 responses. If there are any, the shares mean little. */
      unavailable: own.filter(({ status }) => status === 503).length,
      /** Admitted requests as a share of the limit: of all windows but the first, and the worst. */
      share: figure(sum / shares.length),
      leastShare: figure(Math.min(...shares)),
    }
  })
}

/** Counts admitted requests per window, without the first window and the incomplete last one. */
function admittedByWindow(requests: readonly RequestEvent[], windowMs: number): readonly number[] {
  const [first, last] = [requests[0]?.invokeMs ?? 0, requests.at(-1)?.invokeMs ?? 0]
  const counts = Array<number>(Math.max(0, Math.floor((last - first) / windowMs))).fill(0)
  for (const { invokeMs, status } of requests) {
    const at = Math.floor((invokeMs - first) / windowMs)
    if (status === 200 && at < counts.length) counts[at] = (counts[at] ?? 0) + 1
  }
  return counts.slice(1)
}
