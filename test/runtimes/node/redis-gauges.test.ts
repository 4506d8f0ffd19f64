/** The masters of a cluster in the metrics. */
import { expect, test } from 'vitest'
import { BUCKETS_MS } from '../../../src/observability/metrics/catalogue.ts'
import { createCounters, seriesName } from '../../../src/observability/metrics/counters.ts'
import { exposition } from '../../../src/observability/metrics/exposition.ts'
import { policyGauges } from '../../../src/runtimes/node/policy-version.ts'
import type { ServerState } from '../../../src/runtimes/node/redis/socket/resp-client.ts'
import { masterMetrics } from '../../../src/runtimes/node/redis-gauges.ts'

const ADDRESS = '10.0.0.1:6379'
const durations = (at: number, count: number) =>
  Array.from({ length: BUCKETS_MS.length + 1 }, (_, each) => (each === at ? count : 0))
const STATE: ServerState = {
  ...{ isBelieved: true, answered: 3, failed: 1, doubted: 0, fenced: 0 },
  ...{ durations: durations(2, 3), sumMs: 5.5 },
}

const LOST = seriesName('portcullis_audit_events_total', ['lost'])

function createWorld(state: ServerState = STATE) {
  const world = { masters: new Map([[ADDRESS, state]]), promotions: 0, lost: 0 }
  const withMasters = masterMetrics({
    masters: () => world.masters,
    promotions: () => world.promotions,
    pendingFacts: async () => 7,
    sums: () => [[LOST, world.lost]],
  })
  return { world, gauges: withMasters(policyGauges(undefined)), withMasters }
}
const totalsOf = (counts: ReadonlyMap<string, number>, open = new Map<string, number>()) => ({
  ...{ counts, open, isolates: 3, lastReportMs: undefined, bans: 0, overflowEvents: 0 },
})

test('a master that an isolate does not believe, or whose breaker is open, is shown by its address', () => {
  const { world, gauges } = createWorld({ ...STATE, isBelieved: false })
  expect(gauges.reported).toEqual([`redis-master:${ADDRESS}`])
  const open = new Map([...gauges.reported, `redis:${ADDRESS}`].map((name) => [name, 2]))
  const text = exposition(totalsOf(new Map(), open), undefined, {}, gauges)
  expect(text).toContain(`portcullis_redis_master_doubted_isolates{master="${ADDRESS}"} 2`)
  expect(text).toContain(`portcullis_redis_master_breaker_open_isolates{master="${ADDRESS}"} 2`)
  world.masters.set(ADDRESS, STATE)
  expect(gauges.reported).toEqual([])
})

test('calls, their durations, silences and failovers are reported once, by all gateways of a process', async () => {
  const { world, gauges, withMasters } = createWorld()
  const counters = createCounters(gauges.counted)
  const first = counters.take()
  await gauges.refresh?.()
  const text = exposition(totalsOf(first), undefined, {}, gauges)
  for (const line of [
    `portcullis_redis_master_calls_total{master="${ADDRESS}",outcome="answered"} 3`,
    `portcullis_redis_master_calls_total{master="${ADDRESS}",outcome="failed"} 1`,
    `portcullis_redis_master_duration_seconds_bucket{master="${ADDRESS}",le="0.002"} 3`,
    `portcullis_redis_master_duration_seconds_sum{master="${ADDRESS}"} 0.005`,
    'portcullis_redis_pending_facts 7',
    // Shown before the first one, because Prometheus sees no increase in a new series.
    'portcullis_redis_failovers_total 0',
    `portcullis_redis_master_fenced_total{master="${ADDRESS}"} 0`,
  ])
    expect(text).toContain(`${line}\n`)
  world.masters.set(ADDRESS, { ...STATE, answered: 5, doubted: 2, fenced: 1 })
  world.promotions = 1
  world.lost = 4
  // After a reload of the policy, both gateways report for a while.
  const next = createCounters(withMasters(policyGauges(undefined)).counted)
  expect(Object.fromEntries(next.take())).toEqual({
    [`["portcullis_redis_master_calls_total","${ADDRESS}","answered"]`]: 2,
    [`["portcullis_redis_master_calls_total","${ADDRESS}","doubted"]`]: 2,
    [`["portcullis_redis_master_fenced_total","${ADDRESS}"]`]: 1,
    '["portcullis_redis_failovers_total"]': 1,
    [LOST]: 4,
  })
  expect([...counters.take()]).toEqual([])
})
