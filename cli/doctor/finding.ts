/** The findings of `portcullis doctor`. */

/** `not checked`: nothing is known about it from here. */
export type Level = 'error' | 'warning' | 'ok' | 'not checked'

export interface Finding {
  readonly level: Level
  /** The name of the check, such as `redis clock`. */
  readonly check: string
  /** Contains no secret. */
  readonly seen: string
  /** One sentence; absent if there is nothing to do. */
  readonly remedy?: string
}

export const ok = (check: string, seen: string): Finding => ({ level: 'ok', check, seen })

const withRemedy =
  (level: Level) =>
  (check: string, seen: string, remedy: string): Finding => ({ level, check, seen, remedy })

export const warning = withRemedy('warning')
export const mistake = withRemedy('error')
export const notChecked = withRemedy('not checked')

/** From the most to the least urgent. */
const ORDER: readonly Level[] = ['error', 'warning', 'ok', 'not checked']

/** Returns the findings with the most urgent ones first. Otherwise keeps their order. */
export function byUrgency<Found extends Finding>(findings: readonly Found[]): Found[] {
  return [...findings].sort((a, b) => ORDER.indexOf(a.level) - ORDER.indexOf(b.level))
}
