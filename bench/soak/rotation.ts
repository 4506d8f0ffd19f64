/** Starts and ends the faults of the plan. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Fault } from '../../dev/fault-proxy/fault.ts'
import type { Child } from '../processes/child.ts'
import type { Death } from './audit-account.ts'
import type { Explanations } from './explanations.ts'
import { faultOf, type Proxied } from './faults.ts'
import type { Gateway } from './gateway.ts'
import type { Question, SurroundingsReady } from './protocol.ts'
import type { PlannedFault } from './schedule.ts'

const MS_PER_SECOND = 1_000
/** The other gateway is never killed, so that its memory can be observed. */
const VICTIM = 1
const NO_FAULT: Fault = { kind: 'none' }

export interface RotationOptions {
  readonly plan: readonly PlannedFault[]
  /** Start of the load. */
  readonly startMs: number
  readonly surroundings: Child<SurroundingsReady>
  readonly gateways: readonly [Gateway, Gateway]
  readonly explanations: Explanations
  readonly signal: AbortSignal
}

export interface Rotation {
  /** Returns the name of the active fault. */
  now(): string
  readonly deaths: readonly Death[]
  /** Resolves when every fault has ended and every gateway runs again. */
  readonly done: Promise<void>
}

export function rotateFaults(options: RotationOptions): Rotation {
  const { plan, startMs, surroundings, gateways, explanations, signal } = options
  const deaths: Death[] = []
  let current = 'none'

  const set = (at: Proxied, fault: Fault) =>
    surroundings.ask({ kind: 'fault', at, fault } satisfies Question)
  const until = (timeMs: number) =>
    sleep(Math.max(0, timeMs - Date.now()), undefined, { signal }).catch(() => {})

  async function kill(name: PlannedFault['name']): Promise<void> {
    const window = explanations.begin(name, Date.now(), VICTIM)
    await gateways[VICTIM].kill()
    // Recorded after the kill: its last responses may be read after its end.
    deaths.push({ gateway: VICTIM, timeMs: Date.now() })
    await gateways[VICTIM].start()
    window.endMs = Date.now()
  }

  async function disturb(planned: PlannedFault): Promise<void> {
    const { at, steps } = faultOf(planned.name)
    if (at === 'gateway') return kill(planned.name)
    const fromMs = Date.now()
    const stepMs = (startMs + planned.endSeconds * MS_PER_SECOND - fromMs) / steps.length
    const window = explanations.begin(planned.name, fromMs)
    for (const [index, fault] of steps.entries()) {
      if (signal.aborted) break
      await set(at, fault)
      await until(fromMs + (index + 1) * stepMs)
    }
    await set(at, NO_FAULT)
    window.endMs = Date.now()
  }

  async function run(): Promise<void> {
    for (const planned of plan) {
      await until(startMs + planned.startSeconds * MS_PER_SECOND)
      if (signal.aborted) return
      // The plan is late because a gateway started slowly.
      if (Date.now() > startMs + planned.endSeconds * MS_PER_SECOND) continue
      current = planned.name
      await disturb(planned)
      current = 'none'
    }
  }
  const done = run()
  // A later await gets the error. Without this handler, Node would end the process before.
  done.catch(() => {})
  return { now: () => current, deaths, done }
}
