/** Injects the planned faults and records their times. */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  applySteps,
  injectFaults,
  secondsLeft,
  seededRandom,
  untilSeconds,
} from '../chaos/faults.ts'
import { type ClusterFault, isOfCluster, linkSteps, type PlannedFault } from './faults.ts'
import type { System } from './system.ts'
import { EVERYBODY } from './terms.ts'

/** Minimum and random additional duration of a pause, and of the following run. */
const [PAUSE_MS, PAUSE_JITTER_MS] = [200, 2_000]
const [RUN_MS, RUN_JITTER_MS] = [500, 1_000]
/** Time between two kills of a process. */
const LIFE_MS = 3_000
/** Minimum and random additional downtime of Redis. */
const [DOWN_MS, DOWN_JITTER_MS] = [100, 1_500]

export interface InjectOptions {
  readonly plan: readonly PlannedFault[]
  readonly seed: number
  readonly signal: AbortSignal
  readonly progress: (what: string) => void
}

/** Injects the faults. Resolves when the plan is complete and all processes run again. */
export async function inject(
  { dependencies, cluster, gateways, events, now }: System,
  { plan, seed, signal, progress }: InjectOptions,
): Promise<void> {
  const random = seededRandom(seed)
  const clock = { startMs: now(), now, signal }
  const wait = (ms: number, jitterMs = 0) => sleep(ms + random() * jitterMs, undefined, { signal })

  async function repeat(endSeconds: number, once: () => Promise<void>): Promise<void> {
    while (secondsLeft(endSeconds, clock) * 1_000 > LIFE_MS) await once()
    await untilSeconds(endSeconds, clock)
  }

  function pause({ processes, endSeconds }: PlannedFault): Promise<void> {
    const chosen = processes.flatMap((process) => gateways[process] ?? [])
    return repeat(endSeconds, async () => {
      for (const gateway of chosen) gateway.pause()
      try {
        await wait(PAUSE_MS, PAUSE_JITTER_MS)
      } finally {
        for (const gateway of chosen) gateway.resume()
      }
      await wait(RUN_MS, RUN_JITTER_MS)
    })
  }

  function killGateways({ processes, endSeconds }: PlannedFault): Promise<void> {
    return repeat(endSeconds, async () => {
      for (const process of processes) {
        await gateways[process]?.kill()
        await gateways[process]?.start()
      }
      await wait(LIFE_MS)
    })
  }

  async function killRedis(keepsData: boolean): Promise<void> {
    const fromMs = now()
    await dependencies?.killRedis()
    await wait(DOWN_MS, DOWN_JITTER_MS)
    await dependencies?.startRedis(keepsData)
    if (!keepsData) events.push({ kind: 'loss', fromMs, untilMs: now() })
    await wait(LIFE_MS)
  }

  async function disturbCluster(
    name: ClusterFault,
    { processes, endSeconds }: PlannedFault,
  ): Promise<void> {
    const fromMs = now()
    const done = await cluster?.perform({ name, cutOff: processes })
    if (done?.mayLoseUnits) events.push({ kind: 'loss', only: 'windows', fromMs, untilMs: now() })
    await untilSeconds(endSeconds, clock)
  }

  async function perform(fault: PlannedFault): Promise<void> {
    const { name, processes, endSeconds } = fault
    if (isOfCluster(name)) return disturbCluster(name, fault)
    switch (name) {
      case 'gateway-paused':
        return pause(fault)
      case 'gateway-killed':
        return killGateways(fault)
      case 'redis-killed':
        return repeat(endSeconds, () => killRedis(true))
      case 'redis-lost':
        await killRedis(false)
        return untilSeconds(endSeconds, clock)
      default:
        return applySteps(linkSteps(name) ?? [], endSeconds, clock, async (step) => {
          for (const process of processes) await dependencies?.setFault(process, step)
        })
    }
  }

  await injectFaults(plan, clock, async (fault, index) => {
    const { name, processes } = fault
    progress(`${index + 1} of ${plan.length}: ${name} at ${processes.join(', ')}`)
    const fromMs = now()
    await perform(fault)
    const affected = isOfCluster(name) ? EVERYBODY : processes
    events.push({ kind: 'fault', name, processes: affected, fromMs, untilMs: now() })
  })
}
