/** Creates the meter of one limit: the plan of a caller, and its slots. */
import type { LimitRequest, PlanTable } from '../../access/admission/limit.ts'
import { planRecordOf } from '../../access/admission/plan-record.ts'
import { type Principal, vouchingIssuer } from '../../access/principal.ts'
import { attached } from '../../isolate/attached.ts'
import { randomHex } from '../../isolate/random-ids.ts'
import type { HoldingMeter } from '../../middleware/admit.ts'
import { keyPart } from '../../redis/key-part.ts'
import type { PlanBy } from './definition.ts'
import { holdSlots } from './hold.ts'

const NO_SOURCES: readonly string[] = []
/** 64 bits: the number of slots of one party is small. */
const SLOT_BYTES = 8

export interface PlansMeter extends HoldingMeter {
  readonly planBy: readonly PlanBy[]
}

export interface MeterOptions extends Pick<PlansMeter, 'kind' | 'planBy' | 'scripts'> {
  readonly plans: PlanTable | undefined
  readonly windowSeconds: number
}

export function createMeter({
  kind,
  plans,
  planBy,
  windowSeconds,
  scripts,
}: MeterOptions): PlansMeter {
  const sources = attached<Principal, readonly string[]>()

  async function derive(principal: Principal): Promise<readonly string[]> {
    const found = await Promise.all(planBy.map((by) => deriveSource(by, principal)))
    const own = found.filter((source) => source !== undefined)
    return sources(principal, own)
  }

  const newSlot = () => (kind === 'concurrency' ? randomHex(SLOT_BYTES) : undefined)
  return {
    feature: 'plans',
    kind,
    plans,
    planBy,
    scripts,
    scale: kind === 'concurrency' ? 'qu="concurrent-requests"' : `w=${windowSeconds}`,
    newSlot,
    async complete(request: LimitRequest, principal: Principal | null) {
      const planSources =
        plans === undefined || principal === null
          ? NO_SOURCES
          : (sources(principal) ?? (await derive(principal)))
      return { ...request, planSources, slot: newSlot() }
    },
    hold: holdSlots,
  }
}

async function deriveSource(by: PlanBy, principal: Principal): Promise<string | undefined> {
  if (by === 'claim')
    return principal.plan === undefined ? undefined : `=${await keyPart(principal.plan)}`
  const value = principal[by]
  if (value === undefined) return undefined
  return planRecordOf(by, vouchingIssuer(principal, by), value)
}
