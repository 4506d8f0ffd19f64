/** Scales the counts of a sample to the fleet: commands, masters, network and cost. */
import { laneIndex, laneTags, SLOTS, tagSlot } from '../../src/redis/lanes.ts'
import { sumOf } from '../measure/statistics.ts'
import type { Costs } from './costs.ts'
import type { FleetOptions } from './experiment.ts'
import type { FleetCounts } from './fleet.ts'
import prices from './prices.json' with { type: 'json' }
import { callersOf, subjectOf, tenantOf, tenantsOf } from './traffic.ts'

const SECONDS_PER_MONTH = 730 * 3_600
const HOURS_PER_MONTH = 730
/** Of a master. */
const REPLICAS = 1
/** Units that ElastiCache Serverless counts for an admission: an assumption. */
const UNITS_PER_COMMAND = 5
const MICROS = 1e6

export type FleetSize = ReturnType<typeof sizeOf>

/** Returns the commands a second at each lane of the fleet, without reads of the feed. */
function commandsByLane(options: FleetOptions, counts: FleetCounts): readonly number[] {
  const byLane = Array.from({ length: options.lanes }, () => 0)
  const add = (value: string, commands: number) => {
    const lane = laneIndex(value, options.lanes)
    byLane[lane] = (byLane[lane] ?? 0) + commands
  }
  let bySubject = 0
  for (const kind of options.kinds) {
    const commands = counts.byKind.get(kind.id)?.commands ?? 0
    bySubject += commands
    const ofOne = commands / callersOf(kind, options.sampleRate) / options.seconds
    const callers = callersOf(kind, options.rate)
    for (let index = 0; index < callers; index++) add(subjectOf(kind, index), ofOne)
  }
  const { admissions, renewals, refunds } = counts.commands
  const ofTenants = admissions + renewals + refunds - bySubject
  if (!options.limits.some(({ by }) => by === 'tenant')) return byLane
  const ofOne = ofTenants / tenantsOf(options.sampleRate) / options.seconds
  for (let index = 0; index < tenantsOf(options.rate); index++) add(tenantOf(index), ofOne)
  return byLane
}

/** Returns the sum of a number over the lanes of each master. Masters have even ranges of slots. */
export function byMaster(byLane: readonly number[], masters: number): readonly number[] {
  const sums = Array.from({ length: masters }, () => 0)
  for (const [lane, tag] of laneTags(byLane.length).entries()) {
    const master = Math.floor((tagSlot(tag) * masters) / SLOTS)
    sums[master] = (sums[master] ?? 0) + (byLane[lane] ?? 0)
  }
  return sums
}

/** Scales the counts of a run. `workerUs` is the CPU of a Worker for a request. */
export function sizeOf(options: FleetOptions, counts: FleetCounts, costs: Costs, workerUs: number) {
  const { rate, lanes, gateways, processes } = options
  const commands = commandsByLane(options, counts)
  const commandsPerSecond = sumOf(commands, (each) => each)
  // A process on a cluster reads the feeds of all lanes together, when half of the bound has passed.
  const together = options.maxStalenessMs > 0 ? 2_000 / options.maxStalenessMs : 0
  const readsOfLane = lanes === 1 ? counts.feedReadsPerView : together
  const feedReadsPerSecond = readsOfLane * gateways * processes * lanes
  const feedReadsOfGateways = feedReadsPerSecond / processes
  // One server has no replica of the cluster's kind.
  const factor = lanes === 1 ? 1 : costs.cluster.value
  const microsOf = (reads: number) =>
    commands.map(
      (each) => (each * costs.admission.value + (reads / lanes) * costs.feedRead.value) * factor,
    )
  const enough = (reads: number) => {
    const micros = microsOf(reads)
    for (let masters = 1; masters <= lanes; masters++)
      if (Math.max(...byMaster(micros, masters)) <= costs.busy.value * MICROS) return masters
    return undefined
  }
  const masters = enough(feedReadsPerSecond)
  const loads = byMaster(commands, masters ?? lanes)
  const bytesPerSecond =
    commandsPerSecond * counts.bytesPerAdmission + feedReadsPerSecond * costs.feedBytes.value
  const month = {
    requests: rate * SECONDS_PER_MONTH,
    commands: (commandsPerSecond + feedReadsPerSecond) * SECONDS_PER_MONTH,
    gigabytes: (bytesPerSecond * SECONDS_PER_MONTH) / 1e9,
  }
  const priceOf = (id: keyof typeof prices.prices, amount: number) =>
    (amount * prices.prices[id].usd) / prices.prices[id].per
  return {
    /** Admissions at all lanes, renewals and refunds. */
    commandsPerRequest: commandsPerSecond / rate,
    /** Of the feed, if each process reads it, and if one reader of a gateway does. */
    ...{ commandsPerSecond, feedReadsPerSecond, feedReadsOfGateways },
    /** The fewest masters that are not too busy. Undefined: there are not enough lanes. */
    masters,
    mastersWithReaders: enough(feedReadsOfGateways),
    /** Commands a second of the busiest master, and as a multiple of the mean. */
    mostCommands: Math.max(...loads),
    mostToMean: (Math.max(...loads) * loads.length) / commandsPerSecond,
    gigabitsPerSecond: (bytesPerSecond * 8) / 1e9,
    gatewayCores: (rate * costs.request.value) / MICROS,
    /** USD a month. */
    monthly: {
      [`Redis nodes, each master with ${REPLICAS} replica`]:
        masters === undefined
          ? undefined
          : priceOf('redisNodeHour', masters * (1 + REPLICAS) * HOURS_PER_MONTH),
      'or ElastiCache Serverless': priceOf('serverlessUnits', month.commands * UNITS_PER_COMMAND),
      'or Upstash, commands and traffic':
        priceOf('upstashCommands', month.commands) + priceOf('upstashGigabytes', month.gigabytes),
      'On Workers: requests': priceOf('workersRequests', month.requests),
      'On Workers: CPU': priceOf('workersMilliseconds', (month.requests * workerUs) / 1000),
      'D1: rows of the audit trail': priceOf(
        'd1RowsWritten',
        month.requests * costs.rowsPerEvent.value,
      ),
    } as Readonly<Record<string, number | undefined>>,
  }
}
