/** Measures cases over HTTP, in turn and several times, as the layers are. */
import { type Backends, ORIGIN_BODY } from '../backends.ts'
import { drive } from '../load.ts'
import type { Options } from '../options.ts'
import { median, ratio, rounded } from '../statistics.ts'
import { readingOf, untilQuiet, usageBetween } from '../usage.ts'
import type { Workerd } from '../workerd.ts'
import { bearing, type Case, type CaseId, loadOf } from './cases.ts'

/**
 * Share of requests that may have asked Redis again, or late, after the last measurement; and how
 * many, on a machine that is too slow for a share to mean something.
 */
const STRAY_CALLS = 0.02
const MIN_STRAY_CALLS = 2

/** One measurement of one case. */
export interface CaseRound {
  readonly requests: number
  readonly requestsPerSecond: number
  readonly p50Ms: number
  readonly p95Ms: number
  readonly p99Ms: number
  /** Of the gateway's process, for each answer. */
  readonly cpuMicros: number
  /** HTTP calls for each answer. */
  readonly redisCalls: number
  readonly gatewayCores: number
  /** Of Redis and its REST server. */
  readonly redisCores: number
  /** Of the process that sends. Close to 1: it could not send more. */
  readonly loadCores: number
  /** Cores that processes of others used meanwhile. */
  readonly otherCores: number
}

export interface CaseFigures extends CaseRound {
  readonly id: CaseId
  readonly title: string
  /** CPU seconds of the gateway for a thousand requests. */
  readonly cpuSecondsPerThousand: number
  readonly requiredPerSecond: number | undefined
  readonly rounds: readonly CaseRound[]
}

const DIGITS: Readonly<Record<keyof CaseRound, number>> = {
  requests: 0,
  requestsPerSecond: 0,
  p50Ms: 2,
  p95Ms: 2,
  p99Ms: 2,
  cpuMicros: 1,
  redisCalls: 4,
  gatewayCores: 2,
  redisCores: 2,
  loadCores: 2,
  otherCores: 2,
}

export interface CasesMeasurement {
  readonly cases: readonly Case[]
  readonly workerd: Workerd
  readonly backends: Backends
  readonly options: Pick<Options, 'connections' | 'seconds' | 'warmUpSeconds' | 'rounds'>
  readonly onProgress: (what: string) => void
}

/** Medians of the rounds. Throws for a wrong answer, and for a call to Redis too many. */
export async function measureCases(measurement: CasesMeasurement): Promise<CaseFigures[]> {
  const { cases, options, onProgress } = measurement
  for (const each of cases) {
    onProgress(`warming up: ${each.title}`)
    await measureOnce(measurement, each, options.warmUpSeconds)
  }
  const done = new Map<Case, CaseRound[]>(cases.map((each) => [each, []]))
  for (let round = 1; round <= options.rounds; round++) {
    for (const [each, rounds] of done) {
      onProgress(`round ${round} of ${options.rounds}: ${each.title}`)
      rounds.push(await measureOnce(measurement, each, options.seconds))
    }
  }
  return [...done].map(([each, rounds]) => figuresOf(each, rounds))
}

/** Throws a `RangeError` for no rounds. */
export function figuresOf(
  { id, title, requiredPerSecond }: Pick<Case, 'id' | 'title' | 'requiredPerSecond'>,
  rounds: readonly CaseRound[],
): CaseFigures {
  const medians = Object.fromEntries(
    (Object.keys(DIGITS) as (keyof CaseRound)[]).map((key) => [
      key,
      rounded(median(rounds.map((round) => round[key])), DIGITS[key]),
    ]),
  ) as unknown as CaseRound
  // Microseconds of one are milliseconds of a thousand.
  const cpuSecondsPerThousand = rounded(medians.cpuMicros / 1000, 3)
  return { id, title, ...medians, cpuSecondsPerThousand, requiredPerSecond, rounds }
}

async function measureOnce(
  { workerd, backends, options: { connections } }: CasesMeasurement,
  each: Case,
  seconds: number,
): Promise<CaseRound> {
  const before = await readingOf(workerd.pid, backends)
  const driven = await drive({ ...loadOf(each, workerd), connections, seconds })
  await untilQuiet(backends)
  const usage = usageBetween(before, await readingOf(workerd.pid, backends))
  const { requests, latencies, loadCores } = driven
  refuseOther(each, requests, usage.counts, connections)
  await useIssued(each, workerd)
  const gatewayMicros = usage.gateway.userMicros + usage.gateway.systemMicros
  const cores = (micros: number) => rounded(micros / 1_000_000 / driven.seconds, 2)
  return {
    requests,
    requestsPerSecond: rounded(requests / driven.seconds, 0),
    p50Ms: latencies.percentile(0.5),
    p95Ms: latencies.percentile(0.95),
    p99Ms: latencies.percentile(0.99),
    cpuMicros: rounded(ratio(gatewayMicros, requests), 1),
    redisCalls: rounded(ratio(usage.counts.calls, requests), 4),
    gatewayCores: cores(gatewayMicros),
    redisCores: cores(usage.redisMicros),
    loadCores: rounded(loadCores, 2),
    otherCores: usage.otherCores,
  }
}

/** A case whose answers came from elsewhere, or that asks Redis more or less, is not measured. */
function refuseOther(
  { title, redisCalls, originRequests }: Case,
  answered: number,
  counts: { readonly requests: number; readonly asserted: number; readonly calls: number },
  connections: number,
): void {
  // What is broken off at the end may have got to one of them, or to both.
  const within = (count: number, each: number) =>
    count >= each * answered &&
    count <= each * (answered + Math.max(answered * STRAY_CALLS, MIN_STRAY_CALLS) + connections)
  if (!within(counts.requests, originRequests))
    throw new Error(`${title}: ${answered} answers, but ${counts.requests} requests to the origin`)
  if (counts.asserted !== counts.requests)
    throw new Error(`${title}: the origin was not always told who asks`)
  if (!within(counts.calls, redisCalls))
    throw new Error(`${title}: ${answered} answers, but ${counts.calls} calls to Redis`)
}

/** Tokens that were issued just now must open the gateway. */
async function useIssued({ title, issued }: Case, { originOf }: Workerd): Promise<void> {
  for (const token of issued?.samples() ?? []) {
    const url = `${originOf('gateway')}/orders?limit=20`
    const response = await fetch(url, { headers: bearing(token) })
    if ((await response.text()) !== ORIGIN_BODY)
      throw new Error(`${title}: the gateway answers its own token with ${response.status}`)
  }
  issued?.clear()
}
