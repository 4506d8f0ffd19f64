/** Plans the faults. */
import { seededRandom } from '../../dev/fault-proxy/random.ts'
import { FAULT_NAMES, type FaultName } from './faults.ts'

/** The active share of a fault's window. The rest shows that the gateway recovers. */
const FAULT_SHARE = 0.5

/** Times are in seconds since the start of the load. */
export interface PlannedFault {
  readonly name: FaultName
  readonly startSeconds: number
  readonly endSeconds: number
}

export interface ScheduleOptions {
  readonly seconds: number
  readonly windowSeconds: number
  readonly faults: readonly FaultName[]
  readonly seed: number
}

/**
 * Plans a fault for each window except the first, which has none for comparison. Each fault occurs
 * once before any occurs again, each time in a new order.
 */
export function planFaults(options: ScheduleOptions): readonly PlannedFault[] {
  const { seconds, windowSeconds, faults = FAULT_NAMES, seed } = options
  const random = seededRandom(seed)
  const planned: PlannedFault[] = []
  let round: FaultName[] = []
  for (let start = windowSeconds; start + windowSeconds <= seconds; start += windowSeconds) {
    if (round.length === 0) round = shuffled(faults, random)
    const name = round.pop()
    if (name === undefined) break
    const endSeconds = start + windowSeconds * FAULT_SHARE
    planned.push({ name, startSeconds: start, endSeconds })
  }
  return planned
}

function shuffled<Item>(items: readonly Item[], random: () => number): Item[] {
  const result = [...items]
  for (let at = result.length - 1; at > 0; at--) {
    const other = Math.floor(random() * (at + 1))
    const item = result[at] as Item
    result[at] = result[other] as Item
    result[other] = item
  }
  return result
}
