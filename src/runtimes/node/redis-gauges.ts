/** The masters of a Redis Cluster in the metrics. */
import type { Metric } from '../../observability/metrics/catalogue.ts'
import type { OwnGauges } from '../../observability/metrics/exposition.ts'
import type { RespClient } from './redis/resp.ts'

const DOUBTED = 'portcullis_redis_master_doubted_isolates'
const NAME = 'redis-master:'

const METRICS: Readonly<Record<string, Metric>> = {
  [DOUBTED]: {
    kind: 'gauge',
    labels: ['master'],
    help:
      'Isolates that reported in the last 35 s that they do not believe the master of a Redis Cluster: ' +
      'it does not answer, or has not proven that it still is the master.',
  },
}

/** Adds the masters that an isolate does not believe to its gauges. */
export const withMasters = (gauges: OwnGauges, masters: RespClient['masters']): OwnGauges => ({
  metrics: { ...gauges.metrics, ...METRICS },
  get reported() {
    const doubted = [...masters()].filter(([, { isBelieved }]) => !isBelieved)
    return [...gauges.reported, ...doubted.map(([address]) => NAME + address)]
  },
  *samplesOf(reported) {
    yield* gauges.samplesOf(reported)
    for (const [name, value] of reported)
      if (name.startsWith(NAME)) yield { metric: DOUBTED, labels: [name.slice(NAME.length)], value }
  },
})
