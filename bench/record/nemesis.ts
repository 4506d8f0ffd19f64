/** Injects the planned faults and records their times. */
import { setTimeout as sleep } from 'node:timers/promises'
import { seededRandom } from '../../dev/fault-proxy/random.ts'
import { linkSteps, type PlannedFault } from './faults.ts'
import type { System } from './system.ts'

/** Minimum and random additional duration of a pause, and of the following run. */
const [PAUSE_MS, PAUSE_JITTER_MS] = [200, 2_000]
const [RUN_MS, RUN_JITTER_MS] = [500, 1_000]
/** Time between two kills of a process. */
const LIFE_MS = 3_000
/** Minimum and random additional downtime of Redis. */
const [DOWN_MS, DOWN_JITTER_MS] = [100, 1_500]

export interface NemesisOptions {
  readonly plan: readonly PlannedFault[]
  readonly seed: number
  readonly signal: AbortSignal
  readonly progress: (what: string) => void
}

/** Injects the faults. Resolves when the plan is complete and all processes run again. */
export async function plague(
  { surroundings, gateways, events, now }: System,
  { plan, seed, signal, progress }: NemesisOptions,
): Promise<void> {
  const random = seededRandom(seed)
  const startMs = now()
  const secondsLeft = (untilSeconds: number) => untilSeconds - (now() - startMs) / 1_000
  const wait = (ms: number) => sleep(Math.max(0, ms), undefined, { signal })

  /** Repeats an action until the end of the fault. */
  async function repeat(untilSeconds: number, once: () => Promise<void>): Promise<void> {
    while (secondsLeft(untilSeconds) * 1_000 > LIFE_MS) await once()
    await wait(secondsLeft(untilSeconds) * 1_000)
  }

  async function ofLinks({ name, processes, startSeconds, endSeconds }: PlannedFault) {
    const set = (fault: Parameters<typeof surroundings.ask>[0] & { kind: 'fault' }) =>
      surroundings.ask(fault)
    const steps = linkSteps(name) ?? []
    try {
      for (const [index, fault] of steps.entries()) {
        for (const process of processes) await set({ kind: 'fault', process, fault })
        const part = ((endSeconds - startSeconds) * (index + 1)) / steps.length
        await wait(secondsLeft(startSeconds + part) * 1_000)
      }
    } finally {
      for (const process of processes)
        await set({ kind: 'fault', process, fault: { kind: 'none' } })
    }
  }

  async function pause({ processes, endSeconds }: PlannedFault): Promise<void> {
    const chosen = processes.flatMap((process) => gateways[process] ?? [])
    await repeat(endSeconds, async () => {
      for (const gateway of chosen) gateway.pause()
      try {
        await wait(PAUSE_MS + random() * PAUSE_JITTER_MS)
      } finally {
        for (const gateway of chosen) gateway.resume()
      }
      await wait(RUN_MS + random() * RUN_JITTER_MS)
    })
  }

  async function killGateways({ processes, endSeconds }: PlannedFault): Promise<void> {
    await repeat(endSeconds, async () => {
      for (const process of processes) {
        await gateways[process]?.kill()
        await gateways[process]?.start()
      }
      await wait(LIFE_MS)
    })
  }

  async function killRedis(keepsData: boolean): Promise<void> {
    const fromMs = now()
    await surroundings.ask({ kind: 'kill-redis' })
    await wait(DOWN_MS + random() * DOWN_JITTER_MS)
    await surroundings.ask({ kind: 'start-redis', keepsData })
    if (!keepsData) events.push({ kind: 'loss', fromMs, untilMs: now() })
    await wait(LIFE_MS)
  }

  async function make(fault: PlannedFault): Promise<void> {
    switch (fault.name) {
      case 'gateway-paused':
        return pause(fault)
      case 'gateway-killed':
        return killGateways(fault)
      case 'redis-killed':
        return repeat(fault.endSeconds, () => killRedis(true))
      case 'redis-lost':
        await killRedis(false)
        return wait(secondsLeft(fault.endSeconds) * 1_000)
      default:
        return ofLinks(fault)
    }
  }

  for (const [index, fault] of plan.entries()) {
    const { name, processes, startSeconds } = fault
    await wait(secondsLeft(startSeconds) * 1_000)
    progress(`${index + 1} of ${plan.length}: ${name} at ${processes.join(', ')}`)
    const fromMs = now()
    await make(fault)
    events.push({ kind: 'fault', name, processes, fromMs, untilMs: now() })
  }
}
