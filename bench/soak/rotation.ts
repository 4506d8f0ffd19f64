/** Starts and ends the faults of the plan. */
import type { Dependencies } from '../chaos/dependencies.ts'
import { applySteps, type FaultClock, injectFaults, type PlannedFault } from '../chaos/faults.ts'
import type { Explanations } from '../chaos/ledger.ts'
import type { Death } from './audit.ts'
import { type FaultName, faultOf, PROXIED } from './faults.ts'
import type { Gateway } from './gateway.ts'

/** The other gateway is never killed, so that its memory can be observed. */
const VICTIM = 1

export interface RotationOptions {
  readonly plan: readonly PlannedFault<FaultName>[]
  readonly clock: FaultClock
  readonly dependencies: Dependencies
  readonly gateways: readonly [Gateway, Gateway]
  readonly explanations: Explanations
}

/** Starts the rotation. `done` resolves when every fault has ended and every gateway runs again. */
export function rotateFaults(options: RotationOptions) {
  const { plan, clock, dependencies, gateways, explanations } = options
  const deaths: Death[] = []
  let current = 'none'

  async function kill(name: FaultName): Promise<void> {
    const window = explanations.begin(name, Date.now(), VICTIM)
    await gateways[VICTIM].kill()
    // Recorded after the kill: its last responses may be read after its end.
    deaths.push({ gateway: VICTIM, timeMs: Date.now() })
    await gateways[VICTIM].start()
    window.endMs = Date.now()
  }

  const done = injectFaults(plan, clock, async ({ name, endSeconds }) => {
    current = name
    const { at, steps } = faultOf(name)
    if (at === 'gateway') await kill(name)
    else {
      const window = explanations.begin(name, Date.now())
      const proxy = PROXIED.indexOf(at)
      await applySteps(steps, endSeconds, clock, (fault) => dependencies.setFault(proxy, fault))
      window.endMs = Date.now()
    }
    current = 'none'
  })
  // A later await receives the error. Without this handler, Node would end the process before.
  done.catch(() => {})
  return { now: () => current, deaths, done }
}
