/** The same load at one gateway and at several of a fleet. */
import { drive } from '../load.ts'
import { orderLoad } from '../order-requests.ts'
import { cpuTimesOf, familyCpuMicros, machineCpuMicros } from '../process-times.ts'
import type { Fleet } from '../sessions/fleet.ts'
import { createLatencyHistogram, ratio, rounded } from '../statistics.ts'
import { untilQuiet } from '../usage.ts'

const MICROS_PER_SECOND = 1_000_000
const PER_THOUSAND = 1_000
/** Requests, and calls to Redis, of what was broken off at the end: at most, for each connection. */
const STRAYS = 2

/** One measurement at so many gateways. */
export interface ScalingRound {
  readonly processes: number
  readonly requests: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** CPU seconds for a thousand requests: of all gateways, of Redis and its server, of the load. */
  readonly gatewayCpu: number
  readonly redisCpu: number
  readonly loadCpu: number
  /** Cores that processes of others used meanwhile. */
  readonly otherCores: number
}

export interface ScalingLoad {
  /** Of all gateways together. */
  readonly connections: number
  readonly seconds: number
}

/** Throws for a wrong answer, and unless each request reached the origin and asked Redis once. */
export async function measureScaling(
  { gateways: all, backends, tokens }: Fleet,
  processes: number,
  { connections, seconds }: ScalingLoad,
): Promise<ScalingRound> {
  const gateways = all.slice(0, processes)
  const read = async () => ({
    counts: await backends.counts(),
    gateways: gateways.reduce((sum, { pid }) => sum + microsOf(pid), 0),
    redis: familyCpuMicros(backends.redis.pid),
    load: microsOf(process.pid),
    ours: familyCpuMicros(process.pid),
    machine: machineCpuMicros(),
    timeMs: performance.now(),
  })
  const before = await read()
  const driven = await Promise.all(
    gateways.map(({ url }) =>
      drive({
        ...orderLoad(url, 'read', tokens.writers),
        connections: Math.max(1, Math.floor(connections / processes)),
        seconds,
      }),
    ),
  )
  await untilQuiet(backends)
  const after = await read()

  const latencies = createLatencyHistogram()
  for (const each of driven) latencies.add(each.latencies.counts())
  const reached = after.counts.requests - before.counts.requests
  const calls = after.counts.calls - before.counts.calls
  refuseOther({ answers: latencies.count, reached, calls }, connections)
  const perThousand = (micros: number) =>
    rounded((ratio(micros, reached) / MICROS_PER_SECOND) * PER_THOUSAND, 4)
  const others = after.machine - before.machine - (after.ours - before.ours)
  return {
    processes,
    requests: latencies.count,
    perSecond: rounded(
      driven.reduce((sum, each) => sum + each.requests / each.seconds, 0),
      0,
    ),
    p50Ms: latencies.percentile(0.5),
    p99Ms: latencies.percentile(0.99),
    gatewayCpu: perThousand(after.gateways - before.gateways),
    redisCpu: perThousand(after.redis - before.redis),
    loadCpu: perThousand(after.load - before.load),
    otherCores: rounded(Math.max(0, others) / 1_000 / (after.timeMs - before.timeMs), 2),
  }
}

/** Throws an `Error` of one line unless each request reached the origin and asked Redis once. */
export function refuseOther(
  { answers, reached, calls }: { answers: number; reached: number; calls: number },
  connections: number,
): void {
  const strays = STRAYS * connections
  if (reached < answers) throw new Error('not every answer came from the origin')
  if (reached > answers + strays)
    throw new Error(
      `${reached} requests to the origin for ${answers} answers: one each was expected`,
    )
  if (calls < answers || calls > reached + strays)
    throw new Error(`${calls} calls to Redis for ${reached} requests: one each was expected`)
}

function microsOf(pid: number): number {
  const { userMicros, systemMicros } = cpuTimesOf(pid)
  return userMicros + systemMicros
}
