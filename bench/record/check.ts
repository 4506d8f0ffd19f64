/** Checks a history: takes the events of a run and returns a verdict. Pure. */
import { type Answers, checkAnswers } from './check-answers.ts'
import { checkRevocations, type Revocations } from './check-revocations.ts'
import { checkWindows, type Windows } from './check-windows.ts'
import { faultsByTime } from './faults-by-time.ts'
import { type HistoryEvent, historyOf } from './history.ts'
import type { Terms } from './terms.ts'

export interface Verdict {
  readonly requests: number
  readonly admitted: number
  readonly windows: Windows
  readonly revocations: Revocations
  readonly answers: Answers
}

/** Checks events, which may be in any order. */
export function check(events: Iterable<HistoryEvent>, terms: Terms): Verdict {
  const history = historyOf(events)
  const faults = faultsByTime(history.faults)
  return {
    requests: history.requests.length,
    admitted: history.requests.filter(({ status }) => status === 200).length,
    windows: checkWindows(history, terms),
    revocations: checkRevocations(history, faults, terms),
    answers: checkAnswers(history, faults, terms),
  }
}

/** Returns the violations as sentences; none if everything is correct. */
export const violationsOf = ({ windows, revocations, answers }: Verdict): readonly string[] => [
  ...windows.violations,
  ...revocations.violations,
  ...answers.wrong,
]
