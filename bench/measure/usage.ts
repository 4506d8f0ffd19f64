/** Measures resource use: counts of the backends, and CPU of all processes. */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type CpuTimes,
  cpuBetween,
  familyCpuOf,
  machineCpuMicros,
  totalMicros,
} from '../processes/proc.ts'
import { type Backends, countsBetween } from '../stack/backends.ts'
import { rounded } from './statistics.ts'

export type Usage = Awaited<ReturnType<typeof withUsage>>['usage']

async function readingOf(pids: readonly number[], backends: Backends) {
  return {
    counts: await backends.counts(),
    /** CPU of each measured process and its descendants. */
    processes: pids.map(familyCpuOf),
    /** CPU of Redis and its REST server. */
    redisMicros: totalMicros(familyCpuOf(backends.redis.pid)),
    oursMicros: totalMicros(familyCpuOf(process.pid)),
    machineMicros: machineCpuMicros(),
    timeMs: Date.now(),
  }
}

/** Runs `work` and returns its result with what it used, after all effects of `work` are complete. */
export async function withUsage<Result>(
  pids: readonly number[],
  backends: Backends,
  work: () => Promise<Result>,
) {
  const before = await readingOf(pids, backends)
  const result = await work()
  await untilQuiet(backends)
  const after = await readingOf(pids, backends)
  const ours = after.oursMicros - before.oursMicros
  const others = after.machineMicros - before.machineMicros - ours
  return {
    result,
    usage: {
      counts: countsBetween(before.counts, after.counts),
      processes: after.processes.map((times, index) =>
        cpuBetween(before.processes[index] as CpuTimes, times),
      ),
      redisMicros: after.redisMicros - before.redisMicros,
      /** Cores used by other processes during the measurement. */
      otherCores: rounded(Math.max(0, others) / 1000 / (after.timeMs - before.timeMs), 2),
    },
  }
}

/** Longer than an audit batch stays open, so that all effects of a measurement are complete. */
const SETTLE_MS = 150
const MAX_SETTLE_STEPS = 40

/** Resolves when the backends receive nothing for a while, or after some seconds. */
export async function untilQuiet(backends: Pick<Backends, 'counts'>): Promise<void> {
  let last = ''
  for (let step = 0; step < MAX_SETTLE_STEPS; step++) {
    const counts = JSON.stringify(await backends.counts())
    if (counts === last) return
    last = counts
    await sleep(SETTLE_MS)
  }
}
