/** Runs all variants of a fleet, and sizes each. */
import { readCosts } from './costs.ts'
import type { FleetOptions } from './experiment.ts'
import { type FleetCounts, runFleet } from './fleet.ts'
import type { SimulateOptions } from './options.ts'
import { type FleetSize, sizeOf } from './size.ts'
import { KINDS } from './traffic.ts'

export interface Variant {
  readonly id: 'strict' | 'shared' | 'leased'
  readonly title: string
  readonly options: FleetOptions
  readonly counts: FleetCounts
  readonly size: FleetSize
}

/** A fleet of which a third is lost for a time. */
export interface OutageRun {
  readonly title: string
  readonly options: FleetOptions
  readonly counts: FleetCounts
}

export type Simulated = Readonly<Awaited<ReturnType<typeof simulate>>>

/** Seconds before an outage begins, and after it ends. */
const AROUND_SECONDS = 5
/** An outage is simulated for longer, with fewer callers. */
const OUTAGE_SAMPLE = 0.5

/** Simulates the fleet: strict, with the limits that callers share, leased, and in an outage. */
export async function simulate(
  given: SimulateOptions,
  progress: (what: string) => void = () => undefined,
) {
  const costs = readCosts()
  const { gateways, processes, rate, lanes, seconds, seed, sample, stalenessMs } = given
  const strict: FleetOptions = {
    ...{ gateways, processes, rate, lanes, seconds, seed },
    masters: given.masters ?? lanes,
    limits: given.limits.slice(0, 1),
    kinds: KINDS,
    lease: undefined,
    maxStalenessMs: 0,
    outage: undefined,
    revokes: true,
    sampleRate: sample,
    warmUpSeconds: Math.max(...given.limits.map(({ windowSeconds }) => windowSeconds)),
    latencyMs: costs.latency.value,
  }
  const leased: FleetOptions = { ...strict, lease: given.lease, maxStalenessMs: stalenessMs }
  const variants: Variant[] = []
  const run = async (id: Variant['id'], title: string, options: FleetOptions) => {
    progress(title)
    const counts = await runFleet(options)
    const worker = id === 'leased' ? costs.leasedWorker : costs.strictWorker
    variants.push({
      id,
      title,
      options,
      counts,
      size: sizeOf(options, counts, costs, worker.value),
    })
  }
  await run('strict', 'strict', strict)
  if (given.limits.length > 1)
    await run('shared', 'strict, and a limit of tenants', { ...strict, limits: given.limits })
  await run('leased', 'leased', leased)

  /** In the outage. */
  const masters = given.masters ?? variants[0]?.size.masters ?? lanes
  const outage = {
    atMs: AROUND_SECONDS * 1000,
    forMs: given.outageSeconds * 1000,
    failoverMs: Math.min(costs.failover.value, given.outageSeconds * 1000),
  }
  const lost: Pick<FleetOptions, 'masters' | 'outage' | 'revokes' | 'seconds' | 'sampleRate'> = {
    ...{ masters, outage, revokes: false, seconds: given.outageSeconds + 2 * AROUND_SECONDS },
    sampleRate: Math.max(1, sample * OUTAGE_SAMPLE),
  }
  const outages: OutageRun[] = []
  for (const { title, options } of [
    { title: 'strict', options: { ...strict, ...lost } },
    { title: 'leased', options: { ...leased, ...lost } },
  ]) {
    progress(`${title}, in an outage`)
    outages.push({ title, options, counts: await runFleet(options) })
  }
  return { given, costs, variants, outages, masters }
}

/** Returns what a fleet must never do, and did. */
export function violationsOf({ variants, outages }: Simulated): readonly string[] {
  return [...variants, ...outages].flatMap(({ title, options, counts }) => [
    ...(counts.worstWindow > 1 ? [`${title}: a window exceeded its limit`] : []),
    ...(counts.worstStalenessMs > options.maxStalenessMs
      ? [`${title}: a revocation was later than the bound`]
      : []),
  ])
}
