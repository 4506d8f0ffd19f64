/** Limits and demands in words. */
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

/** Returns what a route demands of the login of a caller. Undefined: nothing. */
export function authenticationInWords({
  authentication,
}: Pick<PolicyRoute, 'authentication'>): string | undefined {
  if (authentication === undefined) return undefined
  const { acr, maxAgeSeconds } = authentication
  return [
    ...(acr === undefined ? [] : [`login of kind ${acr.join(' or ')}`]),
    ...(maxAgeSeconds === undefined ? [] : [`login in the last ${duration(maxAgeSeconds)}`]),
  ].join(', ')
}
