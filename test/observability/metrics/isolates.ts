/** Isolates that count and report over a real Redis, with a test clock and test timers. */

import type { AuditEvent } from '../../../src/audit/event.ts'
import { createCounters } from '../../../src/observability/metrics/counters.ts'
import { exposition } from '../../../src/observability/metrics/exposition.ts'
import { createMetricsStore } from '../../../src/observability/metrics/redis/metrics.ts'
import { createReporter } from '../../../src/observability/metrics/reporter.ts'
import { createRequestCounter } from '../../../src/observability/metrics/request-metrics.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { anEvent } from '../../audit/event.ts'
import { startHttpServer } from '../../harness/http-server.ts'
import { startTestRedis } from '../../harness/redis.ts'

const REPORT_INTERVAL_MS = 10_000

/** The fate of a report: answered, applied without an answer, or not received. */
export type Line = 'good' | 'answers lost' | 'cut'

/** Starts Redis behind a connection that can fail. */
export async function startMetrics(prefer: 'auto' | 'embedded' = 'auto') {
  const redis = await startTestRedis(prefer)
  let line: Line = 'good'
  let calls = 0
  const proxy = await startHttpServer(async (request, response) => {
    calls += 1
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    if (line === 'cut') return void response.destroy()
    const answer = await fetch(new URL(request.url ?? '/', redis.url), {
      method: 'POST',
      headers: { authorization: request.headers.authorization ?? '' },
      body: Buffer.concat(chunks),
    })
    const body = Buffer.from(await answer.arrayBuffer())
    if (line === 'answers lost') return void response.destroy()
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(body)
  })
  const clock = { nowMs: 1_800_000_000_000 }
  const now = () => clock.nowMs
  const rest = createRedisRest({ url: proxy.url, token: redis.token, timeoutMs: 5_000 })
  const store = createMetricsStore(rest)

  /** Creates an isolate. Its pending reports run when the test advances the clock. */
  function isolate(open: readonly string[] = []) {
    const counters = createCounters()
    const count = createRequestCounter(counters)
    const background: Promise<unknown>[] = []
    let sleepers: { readonly untilMs: number; readonly wake: () => void }[] = []
    const sleep = (ms: number) =>
      new Promise<void>((wake) => sleepers.push({ untilMs: clock.nowMs + ms, wake }))
    const scheduleReport = createReporter({ counters, store, open: () => open, now, sleep })
    return {
      counters,
      /**
       * Counts one decision as the gateway does. Returns whether this request will send the
       * report.
       */
      decide(different: Partial<AuditEvent> = {}): boolean {
        const before = background.length
        count(anEvent(different))
        scheduleReport((promise) => void background.push(promise))
        return background.length > before
      },
      /** Drops every pending report, as if its request had ended. */
      kill() {
        sleepers = []
        background.length = 0
      },
      async wake() {
        const due = sleepers.filter(({ untilMs }) => untilMs <= clock.nowMs)
        sleepers = sleepers.filter(({ untilMs }) => untilMs > clock.nowMs)
        for (const { wake } of due) wake()
        if (due.length > 0) await Promise.all(background.splice(0))
      },
    }
  }
  type Isolate = ReturnType<typeof isolate>

  return {
    redis,
    store,
    clock,
    isolate,
    calls: () => calls,
    setLine(next: Line) {
      line = next
    },
    /** Advances the clock by one report interval and runs the pending reports. */
    async pass(...isolates: readonly Isolate[]) {
      clock.nowMs += REPORT_INTERVAL_MS
      for (const each of isolates) await each.wake()
    },
    read: () => store.read(now()),
    async text(newestEventMs?: number): Promise<string> {
      return exposition(await store.read(now()), newestEventMs)
    },
    async close() {
      await proxy.close()
      await redis.close()
    },
  }
}

export type Metrics = Awaited<ReturnType<typeof startMetrics>>
export type Isolate = ReturnType<Metrics['isolate']>
