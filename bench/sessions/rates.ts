/** How much is offered of what is possible. */
import type { Run } from './measure.ts'
import type { Step } from './protocol.ts'

/** Enough to be busy; above, latencies are those of a queue. */
export const OFFERED_SHARE = 0.6

/** Requests a second for each step: a part of what `peak` reached in it. */
export function ratesOf({ steps }: Pick<Run, 'steps'>): Readonly<Record<Step, number>> {
  const rateOf = (step: Step) =>
    OFFERED_SHARE * (steps.find((figures) => figures.step === step)?.perSecond ?? 1)
  return {
    login: rateOf('login'),
    verify: rateOf('verify'),
    logout: rateOf('logout'),
    again: rateOf('again'),
  }
}
