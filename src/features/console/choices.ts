/** Reads the known values of the fields of actions. */
import * as z from 'zod/mini'
import { Unavailable } from '../../errors.ts'
import type { Choices } from './action-forms.ts'
import type { Desk } from './page.ts'

const limitPage = z.object({
  limits: z.array(
    z.object({ name: z.string(), limit: z.number(), windowSeconds: z.number(), by: z.string() }),
  ),
})
const planPage = z.object({ plans: z.array(z.object({ name: z.string() })) })

/** The calls whose forms have names of limits, and of plans. */
const WITH_LIMITS = ['createLimitOverride', 'resetLimit']
const WITH_PLANS = ['createApiKey', 'updateApiKey', 'assignPlan']

/**
 * Returns what the form of a call offers. Nothing if the visitor may not make it, or while Redis cannot be read: the
 * visitor then enters any text.
 */
export async function choicesOf(desk: Desk, call: string): Promise<Choices> {
  if (!desk.may(call)) return {}
  try {
    return await knownChoices(desk, call)
  } catch (error) {
    if (error instanceof Unavailable) return {}
    throw error
  }
}

async function knownChoices(desk: Desk, call: string): Promise<Choices> {
  const limits = WITH_LIMITS.includes(call) ? await desk.read('listLimits', limitPage) : undefined
  const plans =
    WITH_PLANS.includes(call) && desk.may('assignPlan')
      ? await desk.read('listPlans', planPage)
      : undefined
  return {
    ...desk.names,
    limits: limits?.limits,
    plans: plans?.plans.map(({ name }) => name),
  }
}
