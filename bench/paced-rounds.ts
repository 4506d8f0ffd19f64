/** Measures the latency of layers at a fixed rate, far below their capacity. */
import { type Counts, countsBetween } from './backends.ts'
import { includes, type Layer, type Stage } from './layers.ts'
import { offerInTurn } from './open-load.ts'
import { orderLoad } from './order-requests.ts'
import type { Measurement } from './rounds.ts'
import { type LatencyHistogram, rounded } from './statistics.ts'
import { untilQuiet } from './usage.ts'

const DIGITS = 3
/** The load must be compiled and its connections opened. */
const WARM_UP_SECONDS = 1

/** One measurement of one layer. Times start when a request was due. */
export interface PacedRound {
  readonly requests: number
  readonly meanMs: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Median delay of the load itself. */
  readonly lateP50Ms: number
}

/**
 * Measures rounds of each layer. One load at `ratePerSecond` goes to all layers in turn, request by
 * request. Throws for a wrong response, and for a wrong count at the origin.
 */
export async function measurePaced(
  measurement: Measurement,
  ratePerSecond: number,
): Promise<Map<Layer, readonly PacedRound[]>> {
  const { options, onProgress } = measurement
  // So each layer gets the same number of requests as if it were alone.
  const seconds = options.seconds * options.layers.length
  const rounds = new Map<Layer, PacedRound[]>(options.layers.map((layer) => [layer, []]))
  onProgress(`warming up at ${ratePerSecond}/s`)
  await measureOnce(measurement, { ratePerSecond, seconds: WARM_UP_SECONDS })
  for (let round = 1; round <= options.rounds; round++) {
    onProgress(`round ${round} of ${options.rounds} at ${ratePerSecond}/s: all layers in turn`)
    const measured = await measureOnce(measurement, { ratePerSecond, seconds })
    for (const [index, done] of [...rounds.values()].entries())
      done.push(measured[index] as PacedRound)
  }
  return rounds
}

async function measureOnce(
  { target, backends, tokens, options }: Measurement,
  pace: { readonly ratePerSecond: number; readonly seconds: number },
): Promise<readonly PacedRound[]> {
  const { layers, request } = options
  const before = await backends.counts()
  const orders = layers.map((layer) => orderLoad(target.urlOf(layer), request, tokens.writers))
  const { each, lateness } = await offerInTurn(orders, pace)
  await untilQuiet(backends)
  refuseOther(layers, each, countsBetween(before, await backends.counts()))
  return each.map((latencies) => ({
    requests: latencies.count,
    meanMs: rounded(latencies.meanMs, DIGITS),
    p50Ms: latencies.percentile(0.5),
    p99Ms: latencies.percentile(0.99),
    lateP50Ms: lateness.percentile(0.5),
  }))
}

/**
 * Throws unless the origin received each request, with identity and assertion if the layer sends
 * them.
 */
function refuseOther(
  layers: readonly Layer[],
  each: readonly LatencyHistogram[],
  { requests, identified, asserted }: Counts,
): void {
  const answered = (part: Stage) =>
    layers.reduce(
      (sum, { stage }, index) => sum + (includes(stage, part) ? (each[index]?.count ?? 0) : 0),
      0,
    )
  // A request that was repeated after a dropped connection may have reached the origin twice.
  const repeated = requests - answered('passthrough')
  const fits = (count: number, least: number) => count >= least && count <= least + repeated
  if (repeated < 0) throw new Error('not every answer came from the origin')
  if (!fits(identified, answered('authenticate')))
    throw new Error('the origin was not told who asks by the layers that should, and only by them')
  if (!fits(asserted, answered('full')))
    throw new Error('assertions were expected from the full pipeline, and only there')
}
