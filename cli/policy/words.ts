/** Limits in words. */
import type { PolicyLimit, PolicyRoute } from '../../src/policy/policy.ts'
import { duration } from '../text.ts'

/** Returns a limit as text: `100 per 60 s by subject`. */
export function limitInWords({ limit, windowSeconds, by, mode, cost = 1 }: PolicyLimit): string {
  return [
    `${limit} per ${duration(windowSeconds)} by ${typeof by === 'string' ? by : 'a function'}`,
    ...(cost === 1 ? [] : [`cost ${cost}`]),
    ...(mode === 'observe' ? ['observed only'] : []),
  ].join(', ')
}

/** Returns what a route demands of a browser session. Undefined: it accepts none. */
export function sessionInWords({ session }: Pick<PolicyRoute, 'session'>): string | undefined {
  if (session === undefined) return undefined
  const { acr, maxAgeSeconds } = session
  const demands = [
    ...(acr === undefined ? [] : [`login of kind ${acr.join(' or ')}`]),
    ...(maxAgeSeconds === undefined ? [] : [`login in the last ${duration(maxAgeSeconds)}`]),
  ]
  return demands.length === 0 ? 'session or token' : `session only, ${demands.join(', ')}`
}
