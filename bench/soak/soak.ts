/** Runs one soak, from the first process to the result. */
import { setTimeout as sleep } from 'node:timers/promises'
import { seededRandom } from '../chaos/faults.ts'
import { createExplanations, createLedger } from '../chaos/ledger.ts'
import { createClient } from '../load/client.ts'
import { commandLine, type RunContext } from '../main.ts'
import { rounded } from '../measure/statistics.ts'
import { surroundings } from '../surroundings.ts'
import {
  type AuditAccount,
  accountFor,
  auditCount,
  auditRows,
  auditTimes,
  withReasons,
} from './audit.ts'
import { prepareCallers } from './cast.ts'
import { explainedBy, FULL_LOAD, planFaults } from './faults.ts'
import { createLimitWatch, invariantsOf } from './invariants.ts'
import { longestLife, type MemorySample, slopeOf } from './memory.ts'
import { createMonitor, type Sampled } from './monitor.ts'
import { MAX_RATE, type SoakOptions } from './options.ts'
import { recordPauses } from './pauses.ts'
import { rotateFaults } from './rotation.ts'
import { createSender } from './sender.ts'
import { columnsOf, createSeries } from './series.ts'
import { attribute, createSlowest } from './slowest.ts'
import { type System, startSystem } from './system.ts'

const MS_PER_SECOND = 1_000
const SECONDS_PER_MINUTE = 60
const PEAK_SHARE = 0.7
const PEAK_CONCURRENCY = 32
/** The client's own timeout: no request waits longer. */
const SETTLE_MS = 45_000
/** Longer than the queue waits after a third failure of the database (45 s). Then events are considered lost. */
const DRAIN_STALL_MS = 60_000
const POLL_MS = 500

/** Subjects of the callers that exceed their limit. */
const GREEDY = /^greedy-/

/** Runs the soak and returns the result. Throws an `Error` if a process does not start. */
export async function soak(options: SoakOptions, { argv, shutdown, progress }: RunContext) {
  if (process.platform !== 'linux') throw new Error('memory comes from /proc: needs Linux')
  const { signal } = shutdown
  const [pauses, slowest] = [recordPauses(), createSlowest()]
  const random = seededRandom(options.seed)
  const explanations = createExplanations(explainedBy)
  const [ledger, series, limits] = [createLedger(explanations), createSeries(), createLimitWatch()]
  const system = await startSystem({
    runtime: options.runtime,
    seed: options.seed,
    shutdown,
    progress,
    onArrival(arrival) {
      ledger.arrive(arrival)
      if (GREEDY.test(arrival.subject)) limits.arrive(arrival.subject, Date.now())
    },
  })
  const about = surroundings(argv, system.dependencies.redisKind)
  const client = createClient()
  shutdown.defer(async () => client.close())
  const urls = system.gateways.map(({ url }) => url)
  const settings = { client, ledger, explanations, series, slowest, gateways: urls, random }
  const sender = createSender(settings)

  progress('creating callers and their credentials')
  const { load, condemned, operator } = await prepareCallers({ system, sender, random, options })
  let peakPerSecond: number | undefined
  if (options.rate === undefined) {
    progress(`measuring the peak for ${options.peakSeconds} seconds`)
    const window = explanations.begin(FULL_LOAD, Date.now())
    peakPerSecond = Math.round(await load.measurePeak(PEAK_CONCURRENCY, options.peakSeconds))
    window.endMs = Date.now()
    progress(`peak: ${peakPerSecond} requests a second`)
  }
  const rate = options.rate ?? Math.min(MAX_RATE, Math.round((peakPerSecond ?? 0) * PEAK_SHARE))
  signal.throwIfAborted()

  const seconds = options.minutes * SECONDS_PER_MINUTE
  const startMs = Date.now()
  series.begin(startMs)
  slowest.begin()
  const plan = planFaults({ ...options, seconds })
  progress(
    `offering ${rate} requests a second for ${options.minutes} minutes, ${plan.length} faults`,
  )
  const clock = { startMs, now: Date.now, signal }
  const rotation = rotateFaults({ ...system, plan, clock, explanations })
  const monitor = createMonitor({
    system,
    ledger,
    series,
    condemned,
    operator,
    startMs,
    progress,
    fault: rotation.now,
  })
  shutdown.defer(async () => monitor.stop())
  await load.offer(rate, startMs + seconds * MS_PER_SECOND, signal)
  await rotation.done
  signal.throwIfAborted()
  progress('waiting for the last responses')
  await until(() => ledger.inFlight() === 0, SETTLE_MS)
  monitor.stop()
  await Promise.all(system.gateways.map(({ heapMb }) => heapMb()))
  const paused = { load: pauses(), gateways: system.gateways.map((gateway) => gateway.pauses) }
  progress('waiting for the last audit events')
  const rows = () => system.gateways.flatMap(({ port }) => auditRows(port))
  // On Node an event is in Redis before its response is sent, so none ends with a process.
  const deaths = options.runtime === 'node' ? [] : rotation.deaths
  const account = () => accountFor(ledger.answered(), rows(), deaths)
  const audit = await drain(system, account)
  const slow = slowest.slowest()
  const ids = new Set(slow.traces.map(({ requestId }) => requestId))
  const times = new Map(system.gateways.flatMap(({ port }) => [...auditTimes(port, ids)]))
  const findings = ledger.findings()
  const memory = monitor.memory().map(({ heap, resident }) => ({
    /** Heap of the gateway's own isolate, or of its Node process, after a garbage collection. This value is judged. */
    heap: { samples: heap, slope: slopeOf(longestLife(heap.map(memorySample))) },
    /** Memory of the workerd process, with the audit Worker, the queue and D1; or of the Node process. */
    resident: { samples: resident, slope: slopeOf(longestLife(resident.map(memorySample))) },
  }))
  const since = (ms: number) => rounded((ms - startMs) / MS_PER_SECOND, 1)
  return {
    benchmark: 'soak' as const,
    ...about,
    command: commandLine('npm run soak', argv),
    options,
    load: {
      peakPerSecond,
      offeredPerSecond: rate,
      requests: ledger.answered().length,
    },
    invariants: invariantsOf({
      requests: ledger.answered().length,
      unsettled: ledger.inFlight(),
      findings: { ...findings, unexplained: withReasons(findings.unexplained, rows()) },
      overruns: limits.overruns(),
      audit,
      surprises: system.gateways.reduce((sum, gateway) => sum + gateway.surprises(), 0),
      slopes: memory.map(({ heap }) => heap.slope),
    }),
    minutes: series.minutes(),
    slowest: attribute(slow, times, paused, startMs),
    faults: explanations.windows.map(({ name, startMs: from, endMs, troubles, lastTroubleMs }) => ({
      name,
      startSeconds: since(from),
      endSeconds: since(endMs ?? Date.now()),
      /** Number of failures that it explains, and the time from its end to the last of them. */
      troubles,
      recoverySeconds:
        lastTroubleMs === undefined || endMs === undefined
          ? null
          : rounded(Math.max(0, lastTroubleMs - endMs) / MS_PER_SECOND, 1),
    })),
    audit,
    memory: { gateways: memory },
    answers: ledger.totals(),
    series: columnsOf(series.seconds()),
  }
}

/** Returns undefined at the start of another process. */
function memorySample([seconds, megabytes, answered]: Sampled): MemorySample | undefined {
  return megabytes === null ? undefined : { seconds, megabytes, answered }
}

/** Waits until every response has its event, or until no more events arrive. */
async function drain({ gateways }: System, account: () => AuditAccount): Promise<AuditAccount> {
  const count = () => gateways.reduce((sum, { port }) => sum + auditCount(port), 0)
  let known = -1
  let stalledMs = 0
  while (stalledMs < DRAIN_STALL_MS) {
    const now = count()
    stalledMs = now === known ? stalledMs + POLL_MS : 0
    if (now !== known && account().lost === 0) break
    known = now
    await sleep(POLL_MS)
  }
  return account()
}

async function until(isDone: () => boolean, timeoutMs: number): Promise<void> {
  const deadlineMs = Date.now() + timeoutMs
  while (!isDone() && Date.now() < deadlineMs) await sleep(POLL_MS)
}
