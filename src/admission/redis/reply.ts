/** Parses the reply of the admission script. */

import { Unavailable } from '../../errors.ts'
import { secondsOf } from '../../redis/reply.ts'
import type { LimitRequest, RateLimit } from '../limit.ts'
import type { AdmissionFacts, AdmissionQuery } from '../store.ts'
import { exactStateOf, isExact, LEASE_VALUES, STATE_VALUES } from './exact-limit.ts'

type Seconds = (number | undefined)[]

/** The number of keys that exist, and whether the proof was used before. */
const HEAD = 2

/**
 * Parses a reply of `admit.lua`. Contains states of exact limits only. Throws `Unavailable`
 * for a malformed reply: a missing value must not read as "not revoked".
 */
export function factsOf(reply: unknown, query: AdmissionQuery, nowMs: number): AdmissionFacts {
  if (!Array.isArray(reply)) throw new Unavailable('redis', 'malformed')
  const [there, used] = reply
  if (!isCount(there) || (used !== 0 && used !== 1)) throw new Unavailable('redis', 'malformed')

  const { revocation, bans, observedBans = [] } = query
  const tokens = revocation.token === undefined ? 0 : 1
  const revokedBefore = tokens + revocation.revokedBefore.length
  const seconds: Seconds = []
  const states = HEAD + 2 * there
  const checked = revokedBefore + bans.length + observedBans.length
  for (let index = HEAD; index < states; index += 2) {
    const [number, value] = [reply[index], reply[index + 1]]
    if (!isCount(number) || number < 1 || number > checked || typeof value !== 'string')
      throw new Unavailable('redis', 'malformed')
    // Of a revocation only the presence counts.
    seconds[number - 1] = number <= tokens ? 0 : secondsOf(value)
  }
  return {
    tokenRevoked: tokens === 1 && seconds[0] !== undefined,
    revokedBeforeSeconds: there === 0 ? NONE : seconds.slice(tokens, revokedBefore),
    bannedUntilSeconds:
      there === 0 ? NONE : seconds.slice(revokedBefore, revokedBefore + bans.length),
    observedUntilSeconds: there === 0 ? NONE : seconds.slice(revokedBefore + bans.length),
    proofUsed: used === 1,
    limits: statesOf(reply, states, query, nowMs),
  }
}

const NONE: readonly undefined[] = []

/**
 * Returns the states in the order of the query. Undefined: the limit is not exact, or nothing was
 * counted.
 */
function statesOf(
  reply: readonly unknown[],
  from: number,
  { limits }: AdmissionQuery,
  nowMs: number,
): AdmissionFacts['limits'] {
  let at = from
  const states = limits.map((request) => {
    const { rule, leaseRequest } = request
    if (!isExact(rule) || reply.length === from) return undefined
    const state = exactStateOf(rule, reply.slice(at, at + STATE_VALUES), nowMs)
    at += STATE_VALUES
    if (leaseRequest === undefined) return state
    at += LEASE_VALUES
    return withGrant(state, request, reply[at - 2], reply[at - 1])
  })
  if (reply.length !== at) throw new Unavailable('redis', 'malformed')
  return states
}

/** Adds the grant to a state. Throws `Unavailable` if it is larger than requested. */
function withGrant(
  state: RateLimit | Unavailable,
  { leaseRequest }: LimitRequest,
  units: unknown,
  endMicros: unknown,
): RateLimit | Unavailable {
  if (!isCount(units) || !isCount(endMicros) || units > (leaseRequest?.units ?? 0))
    throw new Unavailable('redis', 'malformed')
  return state instanceof Unavailable ? state : { ...state, grant: { units, endMicros } }
}

const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
