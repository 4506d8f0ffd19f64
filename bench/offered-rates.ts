/** Offers one rate to a gateway and records the outcome. */
import type { Shutdown } from '../dev/start/shutdown.ts'
import type { Counts } from './backends.ts'
import type { FullGateway } from './gateway.ts'
import { startLoadProcesses } from './load-processes.ts'
import type { Offered } from './open-load.ts'
import { orderLoad } from './order-requests.ts'
import { rounded } from './statistics.ts'
import { readingOf, untilQuiet, usageBetween } from './usage.ts'

/** Two processes send more than a gateway on the same machine can handle. */
const PROCESSES = 2
/** Half of the gateway's own limit, because its capacity is measured and not its refusals. */
export const MAX_OUTSTANDING = 512
/** Far below the capacity of any machine. Up to this rate no request may be refused. */
const ALWAYS_SERVED_PER_SECOND = 100
/**
 * Maximum share and number of requests that the load or workerd may repeat on another connection.
 */
const REPEATED_SHARE = 0.02
const MIN_REPEATED = 2
const MICROS_PER_SECOND = 1_000_000

export interface RateFigures {
  readonly rate: number
  readonly offered: number
  readonly sent: number
  readonly givenUp: number
  readonly right: number
  readonly shed: Offered['shed']
  /** Requests sent per second. */
  readonly sentRate: number
  /** Correct responses per second, until the last response. */
  readonly reached: number
  /** Correct responses, as a share of all requests that were due. */
  readonly okShare: number
  /** Correct responses, as a share of all requests that were sent. */
  readonly okOfSent: number
  readonly p50Ms: number
  readonly p95Ms: number
  readonly p99Ms: number
  readonly p999Ms: number
  /** Median of the time between the due time and the sending of a request. */
  readonly lateP50Ms: number
  readonly gatewayCores: number
  readonly redisCores: number
  readonly loadCores: number
  /** Cores used by other processes during the measurement. */
  readonly otherCores: number
}

export interface RateOptions {
  /** Requests per second. */
  readonly rate: number
  readonly seconds: number
  readonly shutdown: Pick<Shutdown, 'defer' | 'signal'>
}

/** Measures one rate. Throws for a response that is neither correct nor a 503 of the gateway. */
export async function measureRate(
  { url, pid, backends, tokens }: FullGateway,
  { rate, seconds, shutdown }: RateOptions,
): Promise<RateFigures> {
  const processes = startLoadProcesses(PROCESSES)
  shutdown.defer(processes.close)
  shutdown.signal.throwIfAborted()
  const before = await readingOf(pid, backends)
  const offered = await processes.offer({
    ...orderLoad(url, 'read', tokens.writers),
    ...{ ratePerSecond: rate, seconds, spacing: 'poisson' },
    ...{ maxOutstanding: MAX_OUTSTANDING, mayShed: rate > ALWAYS_SERVED_PER_SECOND },
  })
  await untilQuiet(backends)
  const usage = usageBetween(before, await readingOf(pid, backends))
  await processes.close()
  refuseOther(offered, usage.counts)
  const { latencies, lateness } = offered
  const { gateway, redisMicros, otherCores } = usage
  const cores = (micros: number) => rounded(micros / MICROS_PER_SECOND / offered.seconds, 2)
  const { right, sent, givenUp, shed } = offered
  return {
    ...{ rate, offered: offered.offered, sent, givenUp, right, shed },
    sentRate: rounded(sent / offered.seconds, 0),
    reached: rounded(right / offered.seconds, 0),
    okShare: rounded(right / offered.offered, 4),
    okOfSent: rounded(right / sent, 4),
    p50Ms: latencies.percentile(0.5),
    p95Ms: latencies.percentile(0.95),
    p99Ms: latencies.percentile(0.99),
    p999Ms: latencies.percentile(0.999),
    lateP50Ms: lateness.percentile(0.5),
    gatewayCores: cores(gateway.userMicros + gateway.systemMicros),
    redisCores: cores(redisMicros),
    loadCores: rounded(offered.loadCores, 2),
    otherCores,
  }
}

/**
 * Checks the counts: every correct response came from the origin, which received the caller's
 * identity. Additional requests at the origin were answered with 503 (too late), or repeated after
 * a dropped connection.
 */
export function refuseOther(
  { right, sent }: Pick<Offered, 'right' | 'sent'>,
  { requests, identified, asserted }: Omit<Counts, 'auditEvents' | 'calls'>,
): void {
  if (requests < right) throw new Error('not every answer came from the origin')
  if (requests > sent + Math.max(sent * REPEATED_SHARE, MIN_REPEATED))
    throw new Error('the origin was asked more often than the gateway')
  if (identified !== requests || asserted !== requests)
    throw new Error('the origin was not always told who asks')
}
