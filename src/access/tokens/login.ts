/** What a token says about the login of its user, and whether that meets a demand (RFC 9470). */
import type { LoginDemand } from '../../problems/step-up.ts'
import type { LoginFacts, Principal } from '../principal.ts'
import { readOwnMember } from './jws.ts'

type Payload = Readonly<Record<string, unknown>>

/** The clock of a provider and those of the gateways differ by at most this, for browser sessions. */
const TOLERANCE_SECONDS = 5
const MAX_CHARS = 256
/** More than the methods that RFC 8176 registers for one login. */
const MAX_METHODS = 16

/**
 * Returns what the claims `acr`, `amr` and `auth_time` say about a login; undefined if they say nothing.
 * A claim of another type counts as absent, and no other claim is used instead.
 */
export function readLogin(
  payload: Payload,
  nowSeconds: number,
  clockTolerance: number,
): LoginFacts | undefined {
  const acr = textOf(readOwnMember(payload, 'acr'))
  const methods = readOwnMember(payload, 'amr')
  const amr = [Array.isArray(methods) ? methods : []].flat().flatMap((one) => textOf(one) ?? [])
  const authTimeSeconds = readAuthTime(payload, nowSeconds, clockTolerance)
  if (acr === undefined && amr.length === 0 && authTimeSeconds === undefined) return undefined
  return {
    acr,
    amr: amr.length === 0 ? undefined : amr.slice(0, MAX_METHODS),
    authTimeSeconds,
  }
}

/** Returns the claims that say the same. `JSON.stringify` omits those that are undefined. */
export const loginClaims = ({ acr, amr, authTimeSeconds }: LoginFacts = {}) => ({
  acr,
  amr,
  auth_time: authTimeSeconds,
})

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' && value.length <= MAX_CHARS ? value : undefined

/**
 * Returns `auth_time` in whole seconds. Undefined if the issuer does not say when the user
 * authenticated: without the claim, and with one that is text, in milliseconds or in the future.
 * `iat` never takes its place: it is the time of the token, and an issuer issues a new token for an old
 * login.
 */
function readAuthTime(
  payload: Payload,
  nowSeconds: number,
  clockTolerance: number,
): number | undefined {
  const value = readOwnMember(payload, 'auth_time')
  if (typeof value !== 'number' || !(value > 0)) return undefined
  if (value > nowSeconds + clockTolerance) return undefined
  return Math.floor(Math.min(value, nowSeconds))
}

/**
 * Reports whether a login is known to be at most `maxAgeSeconds` old. Both times are whole seconds.
 * `toleranceSeconds` is added to the age that is accepted.
 */
export function isWithinAge(
  authTimeSeconds: number | undefined,
  maxAgeSeconds: number,
  nowMs: number,
  toleranceSeconds = TOLERANCE_SECONDS,
): boolean {
  if (authTimeSeconds === undefined) return false
  const ageSeconds = Math.floor(nowMs / 1000) - authTimeSeconds
  return ageSeconds >= -TOLERANCE_SECONDS && ageSeconds <= maxAgeSeconds + toleranceSeconds
}

/** The part of a demand that a login does not meet. */
export type UnmetDemand = 'acr' | 'auth_time' | 'auth_time_old'

/** Returns what of a demand a login does not meet, at this moment. Undefined: it meets all of it. */
export function unmetBy(
  login: LoginFacts | undefined,
  { acr, maxAgeSeconds }: LoginDemand,
  nowMs: number,
  toleranceSeconds?: number,
): UnmetDemand | undefined {
  if (acr !== undefined && (login?.acr === undefined || !acr.includes(login.acr))) return 'acr'
  if (maxAgeSeconds === undefined) return undefined
  const authTimeSeconds = login?.authTimeSeconds
  if (isWithinAge(authTimeSeconds, maxAgeSeconds, nowMs, toleranceSeconds)) return undefined
  return authTimeSeconds === undefined ? 'auth_time' : 'auth_time_old'
}

/**
 * Returns what of a demand the login of a caller does not meet. The login of a browser may be 5 s older,
 * so that a user who has just signed in is not asked again because two clocks differ.
 */
export const unmetByCaller = (
  { signIn, login }: Principal,
  demand: LoginDemand,
  nowMs: number,
): UnmetDemand | undefined =>
  unmetBy(signIn ?? login, demand, nowMs, signIn === undefined ? 0 : TOLERANCE_SECONDS)

/**
 * Returns when the login of a caller that was admitted gets too old for a demand, in milliseconds since the
 * epoch. Infinity: never.
 */
export function loginEndMs({ signIn, login }: Principal, { maxAgeSeconds }: LoginDemand): number {
  const { authTimeSeconds } = signIn ?? login ?? {}
  if (maxAgeSeconds === undefined || authTimeSeconds === undefined) return Number.POSITIVE_INFINITY
  const toleranceSeconds = signIn === undefined ? 0 : TOLERANCE_SECONDS
  // Ages are compared in whole seconds.
  return (authTimeSeconds + maxAgeSeconds + toleranceSeconds + 1) * 1_000
}
