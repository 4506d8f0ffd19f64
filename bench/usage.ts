/** What a measurement used: counts of the backends, and CPU of everybody concerned. */
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

/** Longer than an audit batch stays open, so that what a measurement began has ended. */
const SETTLE_MS = 150
/** On a machine that is busy with something else. */
const MAX_SETTLE_STEPS = 40

/** Resolves once nothing has reached the backends for a while, or gives up after some seconds. */
export async function untilQuiet(backends: Pick<Backends, 'counts'>): Promise<void> {
  let last = ''
  for (let step = 0; step < MAX_SETTLE_STEPS; step++) {
    const counts = JSON.stringify(await backends.counts())
    if (counts === last) return
    last = counts
    await sleep(SETTLE_MS)
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
