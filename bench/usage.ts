/** Measures resource use: counts of the backends, and CPU of all processes. */
import { setTimeout as sleep } from 'node:timers/promises'
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
  /** CPU of the gateway's process. */
  readonly gateway: CpuTimes
  /** CPU of Redis and its REST server. */
  readonly redisMicros: number
  /** Cores used by other processes during the measurement. */
  readonly otherCores: number
}

/** Takes a reading. `pid` is the gateway's process. */
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

/** Longer than an audit batch stays open, so that all effects of a measurement are complete. */
const SETTLE_MS = 150
/** Maximum number of steps, for a busy machine. */
const MAX_SETTLE_STEPS = 40

/** Resolves when nothing has reached the backends for a while, or after some seconds. */
export async function untilQuiet(backends: Pick<Backends, 'counts'>): Promise<void> {
  let last = ''
  for (let step = 0; step < MAX_SETTLE_STEPS; step++) {
    const counts = JSON.stringify(await backends.counts())
    if (counts === last) return
    last = counts
    await sleep(SETTLE_MS)
  }
}

/** Returns the difference between two readings. */
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
