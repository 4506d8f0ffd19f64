/** Measures layers in turn in several rounds, so that noise affects all of them equally. */
import type { Backends, Counts } from './backends.ts'
import type { Layer } from './layers.ts'
import { drive } from './load.ts'
import type { Detail } from './options.ts'
import { orderLoad } from './order-requests.ts'
import { ratio, rounded } from './statistics.ts'
import type { Target } from './target.ts'
import type { BenchTokens } from './tokens.ts'
import { readingOf, untilQuiet, usageBetween } from './usage.ts'

/** One measurement of one layer. */
export interface Round {
  readonly requests: number
  readonly requestsPerSecond: number
  readonly p50Ms: number
  readonly p95Ms: number
  readonly p99Ms: number
  /** CPU time of the gateway's process per request that reached the origin. */
  readonly cpuMicros: number
  readonly cpuUserMicros: number
  readonly cpuSystemMicros: number
  readonly redisCalls: number
  /** Messages per request. Undefined if they do not pass the benchmark's own queue. */
  readonly auditEvents: number
  /** Cores used by other processes during the measurement. */
  readonly otherCores: number
}

export interface Measurement {
  readonly target: Target
  readonly backends: Backends
  readonly tokens: BenchTokens
  readonly options: Detail
  /** Receives progress messages. */
  readonly onProgress: (what: string) => void
}

/** Input of one measurement. */
export type Measured = Omit<Measurement, 'options' | 'onProgress'> & {
  readonly options: Pick<Detail, 'request' | 'connections'>
}

/** Measures the rounds of each layer, in the order in which they ran. */
export async function measure(measurement: Measurement): Promise<Map<Layer, readonly Round[]>> {
  const { options, onProgress } = measurement
  const rounds = new Map<Layer, Round[]>(options.layers.map((layer) => [layer, []]))
  for (const layer of options.layers) {
    onProgress(`warming up ${layer.title}`)
    await measureOnce(measurement, layer, options.warmUpSeconds)
  }
  for (let round = 1; round <= options.rounds; round++) {
    for (const [layer, done] of rounds) {
      onProgress(`round ${round} of ${options.rounds}: ${layer.title}`)
      done.push(await measureOnce(measurement, layer, options.seconds))
    }
  }
  return rounds
}

/** Measures a layer for `seconds`. Throws for a wrong response or a wrong count at the origin. */
export async function measureOnce(
  { target, backends, tokens, options }: Measured,
  layer: Layer,
  seconds: number,
): Promise<Round> {
  const before = await readingOf(target.pid, backends)
  const driven = await drive({
    ...orderLoad(target.urlOf(layer), options.request, tokens.writers),
    connections: options.connections,
    seconds,
  })
  await untilQuiet(backends)
  const usage = usageBetween(before, await readingOf(target.pid, backends))
  const { counts, gateway, otherCores } = usage
  refuseOther(layer, driven.requests, counts)

  const perRequest = (total: number, digits = 1) => rounded(ratio(total, counts.requests), digits)
  return {
    requests: driven.requests,
    requestsPerSecond: rounded(driven.requests / driven.seconds, 0),
    p50Ms: driven.latencies.percentile(0.5),
    p95Ms: driven.latencies.percentile(0.95),
    p99Ms: driven.latencies.percentile(0.99),
    cpuMicros: perRequest(gateway.userMicros + gateway.systemMicros),
    cpuUserMicros: perRequest(gateway.userMicros),
    cpuSystemMicros: perRequest(gateway.systemMicros),
    redisCalls: perRequest(counts.calls, 4),
    auditEvents: perRequest(counts.auditEvents, 4),
    otherCores,
  }
}

/** Throws if a layer sends the origin more, less or other requests than it should. */
function refuseOther({ title, stage }: Layer, answered: number, counts: Counts): void {
  const { requests, identified, asserted } = counts
  const known = stage === 'passthrough' || stage === 'hygiene' ? 0 : requests
  if (requests < answered) throw new Error(`${title}: not every answer came from the origin`)
  if (identified !== known) throw new Error(`${title}: the origin was not told who asks`)
  if (asserted !== (stage === 'full' ? requests : 0))
    throw new Error(`${title}: assertions were expected from the full pipeline, and only there`)
}
