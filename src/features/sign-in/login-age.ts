/** The age of a login, as its provider states it. */
import { readOwnMember } from '../../access/tokens/jws.ts'

/** Clocks of the provider and of the gateways differ by at most this. */
const TOLERANCE_SECONDS = 5

/**
 * Returns `auth_time` of an ID token (OpenID Connect Core section 2) in whole seconds. Undefined if the
 * provider does not say when the user authenticated: without the claim, and with one that is text, in
 * milliseconds or in the future. No other claim is used instead: `iat` is the time of the token, and a
 * provider issues a new token for an old login.
 */
export function authTimeIn(
  payload: Readonly<Record<string, unknown>>,
  nowSeconds: number,
  clockTolerance: number,
): number | undefined {
  const value = readOwnMember(payload, 'auth_time')
  if (typeof value !== 'number' || !(value > 0)) return undefined
  if (value > nowSeconds + clockTolerance) return undefined
  return Math.floor(Math.min(value, nowSeconds))
}

/** Reports whether a login is known to be at most `maxAgeSeconds` old. */
export function isWithinAge(
  authTimeSeconds: number | undefined,
  maxAgeSeconds: number,
  nowMs: number,
): boolean {
  if (authTimeSeconds === undefined) return false
  const ageSeconds = nowMs / 1000 - authTimeSeconds
  return ageSeconds >= -TOLERANCE_SECONDS && ageSeconds <= maxAgeSeconds + TOLERANCE_SECONDS
}
