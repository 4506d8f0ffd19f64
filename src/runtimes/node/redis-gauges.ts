/** What a process counts for all of its gateways, in the metrics: the masters of a Redis Cluster, and audit events. */
import { BUCKETS_MS, type Metric } from '../../observability/metrics/catalogue.ts'
import { seriesName } from '../../observability/metrics/counters.ts'
import type { OwnGauges } from '../../observability/metrics/exposition.ts'
import type { ServerState } from './redis/socket/resp-client.ts'
import type { NodeRuntime } from './runtime.ts'

const DOUBTED = 'portcullis_redis_master_doubted_isolates'
const BREAKERS = 'portcullis_redis_master_breaker_open_isolates'
const CALLS = 'portcullis_redis_master_calls_total'
const DURATION = 'portcullis_redis_master_duration_seconds'
const FENCED = 'portcullis_redis_master_fenced_total'
const FAILOVERS = 'portcullis_redis_failovers_total'
const PENDING = 'portcullis_redis_pending_facts'

const OUTCOMES = ['answered', 'failed', 'doubted'] as const

/** What isolates report, by the beginning of its name. */
const GAUGES = new Map([
  ['redis-master:', DOUBTED],
  ['redis:', BREAKERS],
])

export const MASTER_METRICS: Readonly<Record<string, Metric>> = {
  [DOUBTED]: {
    kind: 'gauge',
    labels: ['master'],
    help:
      'Isolates that reported in the last 35 s that they do not believe the master of a Redis Cluster: ' +
      'it does not answer, or has not proven that it still is the master.',
  },
  [BREAKERS]: {
    kind: 'gauge',
    labels: ['master'],
    help: 'Isolates whose circuit breaker for the master was not closed when they last reported.',
  },
  [CALLS]: {
    kind: 'counter',
    labels: ['master', 'outcome'],
    help:
      'Calls to each master of a Redis Cluster: answered, failed (no reply), or doubted (the reply came after ' +
      'a silence, and was not used). A reply after the deadline of its call counts as answered.',
  },
  [DURATION]: {
    kind: 'histogram',
    labels: ['master'],
    help: 'Time until the replies of each master of a Redis Cluster.',
  },
  [FENCED]: {
    kind: 'counter',
    labels: ['master'],
    help:
      'How often isolates stopped believing a master until it had proven again that it is one: after ' +
      'a silence, or the loss of a socket.',
  },
  [FAILOVERS]: {
    kind: 'counter',
    labels: [],
    help: 'Failovers that isolates have seen. Each isolate counts for itself; its log names the new master.',
  },
  [PENDING]: {
    kind: 'gauge',
    labels: [],
    help: 'Revocations, bans and plans that are not in all lanes of a Redis Cluster yet.',
  },
}

/**
 * Creates the metrics of a process. The function adds them to the gauges of one gateway. After a reload of
 * the policy, the gateways share the counts: each is reported once.
 */
export function masterMetrics({
  masters,
  promotions,
  pendingFacts,
  sums: ownSums,
}: Pick<NodeRuntime, 'masters' | 'promotions' | 'pendingFacts' | 'sums'>): (
  gauges: OwnGauges,
) => OwnGauges {
  const reported = new Map<string, number>()
  let pending: number | undefined

  function* sums(): Generator<readonly [string, number]> {
    for (const [address, state] of masters()) yield* sumsOf(address, state)
    yield [seriesName(FAILOVERS, []), promotions()]
    yield* ownSums()
  }

  function* counted(): Generator<readonly [string, number]> {
    for (const [series, sum] of sums()) {
      const before = reported.get(series) ?? 0
      reported.set(series, sum)
      // A master that left and came back counts from 0.
      const increase = sum < before ? sum : sum - before
      if (increase > 0) yield [series, increase]
    }
  }

  return (gauges) => ({
    get metrics() {
      return { ...gauges.metrics, ...MASTER_METRICS, ...shownAsZero([...masters().keys()]) }
    },
    get reported() {
      const doubted = [...masters()].filter(([, { isBelieved }]) => !isBelieved)
      return [...gauges.reported, ...doubted.map(([address]) => `redis-master:${address}`)]
    },
    *samplesOf(reported) {
      yield* gauges.samplesOf(reported)
      if (pending !== undefined) yield { metric: PENDING, labels: [], value: pending }
      for (const [name, value] of reported)
        for (const [start, metric] of GAUGES)
          if (name.startsWith(start)) yield { metric, labels: [name.slice(start.length)], value }
    },
    counted,
    async refresh() {
      pending = await pendingFacts()
    },
  })
}

/** Prometheus sees no increase in a series that appears with its first count. */
function shownAsZero(addresses: readonly string[]): Readonly<Record<string, Metric>> {
  if (addresses.length === 0) return {}
  const with0 = (name: string, series: Metric['series'] = []) => {
    const metric = MASTER_METRICS[name]
    return metric === undefined ? {} : { [name]: { ...metric, series } }
  }
  return {
    ...with0(
      CALLS,
      addresses.flatMap((address) => OUTCOMES.map((outcome) => [address, outcome])),
    ),
    ...with0(
      FENCED,
      addresses.map((address) => [address]),
    ),
    ...with0(FAILOVERS, [[]]),
  }
}

/** Returns sums that only increase while the process uses the master. */
function* sumsOf(address: string, state: ServerState): Generator<readonly [string, number]> {
  for (const outcome of OUTCOMES) yield [seriesName(CALLS, [address, outcome]), state[outcome]]
  yield [seriesName(FENCED, [address]), state.fenced]
  for (let at = 0; at <= BUCKETS_MS.length; at++)
    yield [seriesName(DURATION, [address], String(at)), state.durations[at] ?? 0]
  // Reports have whole milliseconds.
  yield [seriesName(DURATION, [address], 'sum'), Math.floor(state.sumMs)]
}
