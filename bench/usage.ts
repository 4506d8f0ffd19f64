/** What a measurement used: counts of the backends, and CPU of everybody concerned. */
import { type Backends, type Counts, countsBetween } from './backends.ts'
import {
  type CpuTimes,
  cpuBetween,
  cpuTimesOf,
  familyCpuMicros,
  machineCpuMicros,
} from './process-times.ts'
import { rounded } from './statistics.ts'

export interface Reading {
  readonly counts: Counts
  readonly gateway: CpuTimes
  readonly redisMicros: number
  readonly oursMicros: number
  readonly machineMicros: number
  readonly timeMs: number
}

export interface Usage {
  readonly counts: Counts
  /** Of the process of the gateway. */
  readonly gateway: CpuTimes
  /** Of Redis and its REST server. */
  readonly redisMicros: number
  /** Cores that processes of others used meanwhile. */
  readonly otherCores: number
}

/** `pid` is that of the gateway. */
export async function readingOf(pid: number, backends: Backends): Promise<Reading> {
  return {
    counts: await backends.counts(),
    gateway: cpuTimesOf(pid),
    redisMicros: familyCpuMicros(backends.redis.pid),
    oursMicros: familyCpuMicros(process.pid),
    machineMicros: machineCpuMicros(),
    timeMs: Date.now(),
  }
}

/** What happened between two readings. */
export function usageBetween(before: Reading, after: Reading): Usage {
  const ours = after.oursMicros - before.oursMicros
  const others = after.machineMicros - before.machineMicros - ours
  return {
    counts: countsBetween(before.counts, after.counts),
    gateway: cpuBetween(before.gateway, after.gateway),
    redisMicros: after.redisMicros - before.redisMicros,
    otherCores: rounded(Math.max(0, others) / 1000 / (after.timeMs - before.timeMs), 2),
  }
}
