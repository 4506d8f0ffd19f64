/** Verifies tokens by calls to their issuer: one for each token at a time, with a deadline. */

import type { Principal } from '../../access/principal.ts'
import { principalFrom } from '../../access/tokens/claims.ts'
import type { Locator } from '../../access/tokens/discovery.ts'
import type { IssuerRules } from '../../access/tokens/issuer-rules.ts'
import { readOwnMember } from '../../access/tokens/jws.ts'
import { present } from '../../access/tokens/present.ts'
import { credentialHash } from '../../access/tokens/reference.ts'
import { ofSigner, rejected, rejectedFor } from '../../access/tokens/rejection.ts'
import type { IssuerCall, Verified } from '../../access/tokens/verifier.ts'
import { Denied, Unavailable } from '../../errors.ts'
import type { WaitUntil } from '../../isolate/after-response.ts'
import type { Breakers } from '../../isolate/breakers.ts'
import { createCircuitBreaker } from '../../isolate/circuit-breaker.ts'
import { createInFlightCount, FULL } from '../../isolate/in-flight.ts'
import { createLruMap } from '../../isolate/lru-map.ts'
import { isUntil } from '../../isolate/period.ts'
import { createSharedReading } from '../../isolate/shared-reading.ts'
import { copyOfFailure, createSingleFlight, type Flight } from '../../isolate/single-flight.ts'
import type { Denial } from '../../problems/reasons.ts'
import type { ClaimsRequest, TokenClaims } from './requests.ts'

export interface IssuerCallOptions {
  readonly rules: IssuerRules
  /** Finds the endpoint. */
  readonly locator: Locator
  readonly request: ClaimsRequest
  /** How long a positive response is used, in seconds, if the token does not expire before. */
  readonly maxAgeSeconds: number
  /** The audience of a token without one. Default: such a token is refused. */
  readonly audience?: readonly string[] | undefined
  readonly watch: Breakers['watch']
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Of finding the endpoint and of the response, together. */
const CALL_TIMEOUT_MS = 2_000
/** A longer call counts as dead: its request was cancelled, or its isolate was frozen. */
const LEASE_MS = 3_000
const POLL_MS = 20
const MAX_WAIT_MS = LEASE_MS + 500
/** Calls of an isolate to an issuer at once. */
const MAX_CALLS = 100
/** A call counts for 7 to 8 slots, unless it ends before. */
const CALL_SLOT_MS = 500
/** How long a refused token is refused again without a call. */
const REFUSED_MS = 10_000
/** How long a token that the issuer did not decide about is 503 again without a call. */
const UNDECIDED_MS = 3_000
const MAX_REFUSED_BYTES = 2 * 1024 * 1024
/** Size of an entry without its token. */
const REFUSED_ENTRY_BYTES = 512
/** The location itself is cached for longer. */
const LOCATED_MS = 1_000
/** Types of bearer tokens: RFC 6750, and what some providers send in its place. */
const BEARER_TYPE = /^(bearer|access[ _-]?token)$/i
const DPOP_TYPE = /^dpop$/i

/** A refusal, or that the issuer did not decide. No token is accepted because of it. */
interface Remembered {
  readonly denial: Denial | undefined
  readonly untilMs: number
}

type Outcome =
  | { readonly verified: Verified }
  | { readonly denial: Denial }
  | { readonly failure: Unavailable }

/**
 * Creates the call of an issuer. While it is in progress for a token, other requests with the token
 * wait for its outcome. A refused token is refused for 10 seconds without a call. A token that the
 * issuer does not decide about is `Unavailable` for 3 seconds without a call. No other failure is cached. Five failures in a row open the circuit breaker; a response that concerns only this
 * token is not one of them. At most 100 calls run at once; more requests get `Unavailable`
 * (`overloaded`). No response of an earlier call replaces one that fails.
 *
 * The caller caches verified tokens. Does NOT check revocation by the gateway.
 */
export function createIssuerCall({
  rules,
  locator,
  request,
  maxAgeSeconds,
  audience,
  watch,
  now,
}: IssuerCallOptions): IssuerCall {
  const { issuer, clockTolerance } = rules.config
  const breaker = createCircuitBreaker({ name: 'introspection', target: issuer, watch, now })
  const running = createInFlightCount(CALL_SLOT_MS)
  const flights = createSingleFlight<Outcome>({
    now,
    leaseMs: LEASE_MS,
    minPollMs: POLL_MS,
    maxPollMs: POLL_MS,
  })
  // Keyed by the text of the token, as verified tokens are: between a miss of that cache and a look
  // here, nothing waits, so that no second call begins.
  const refused = createLruMap<string, Remembered>({
    maxSize: MAX_REFUSED_BYTES,
    sizeCalculation: (_refusal, token) => REFUSED_ENTRY_BYTES + 2 * token.length,
  })
  const endpoint = createSharedReading<void, string>({
    read: () => locator.locate(now(), CALL_TIMEOUT_MS),
    now,
    memoryMs: LOCATED_MS,
    leaseMs: LEASE_MS,
  })

  async function fetchClaims(token: string): Promise<TokenClaims | undefined> {
    const slot = running.enter(MAX_CALLS, now())
    if (slot === FULL)
      throw new Unavailable('introspection', 'overloaded', { retryAfterSeconds: 1 })
    try {
      const entry = breaker.enter()
      try {
        const signal = AbortSignal.timeout(CALL_TIMEOUT_MS)
        const claims = await request(await endpoint(), token, signal)
        breaker.succeeded()
        if (claims !== 'undecided') return claims
        refused.set(token, { denial: undefined, untilMs: now() + UNDECIDED_MS })
      } catch (error) {
        const failure = failureOf(error)
        // An unreadable response may concern only this token: its user has too many claims, for example.
        if (isUnreadable(error)) breaker.succeeded()
        else breaker.failed(entry, failure.fault)
        throw failure
      }
      throw new Unavailable('introspection', 'refused')
    } finally {
      running.leave(slot)
    }
  }

  async function verify(token: string): Promise<Verified> {
    const claims = await fetchClaims(token)
    if (claims === undefined) throw rejected('inactive')
    const nowMs = now()
    const untilMs = nowMs + maxAgeSeconds * 1000
    const principal = await createPrincipal(claims, token, { nowMs, untilMs })
    const expiresAtMs = Math.min(untilMs, (principal.expiresAtSeconds + clockTolerance) * 1000)
    return { principal, expiresAtMs }
  }

  async function createPrincipal(
    claims: TokenClaims,
    token: string,
    { nowMs, untilMs }: { readonly nowMs: number; readonly untilMs: number },
  ): Promise<Principal> {
    const defaults = { aud: audience, exp: untilMs / 1000, jti: await credentialHash(token) }
    // The issuer vouches for the token, as a signature does.
    return ofSigner(rules.signerOf(claims), () => {
      const iss = present(claims, 'iss')
      if (iss !== undefined && iss !== issuer) throw rejectedFor('iss', iss, [issuer])
      refuseTypes(claims)
      return principalFrom(claims, rules, { nowMs, isOwn: false, defaults })
    })
  }

  async function attempt(token: string, flight: Flight<Outcome>): Promise<Outcome> {
    let outcome: Outcome
    try {
      outcome = { verified: await verify(token) }
    } catch (error) {
      if (error instanceof Denied) {
        const { denial } = error
        refused.set(token, { denial, untilMs: now() + REFUSED_MS })
        outcome = { denial }
      } else {
        outcome = { failure: failureOf(error) }
      }
    }
    flight.end(outcome)
    return outcome
  }

  /** The call continues after its request has ended, because other requests may wait for it. */
  function begin(
    token: string,
    waitUntil: WaitUntil | undefined,
    flight: Flight<Outcome>,
  ): Promise<Outcome> {
    const attempted = attempt(token, flight)
    waitUntil?.(attempted)
    return attempted
  }

  async function fetchOutcome(token: string, waitUntil: WaitUntil | undefined): Promise<Outcome> {
    const latest = flights.latest(token)
    if (latest === undefined) return begin(token, waitUntil, flights.begin(token))
    const { flight, outcome } = await flights.follow(token, latest, (waitedMs) => {
      if (waitedMs > MAX_WAIT_MS) throw new Unavailable('introspection', 'timeout')
    })
    return outcome ?? begin(token, waitUntil, flight)
  }

  return async function callIssuer(token, waitUntil) {
    const refusal = refused.get(token)
    if (refusal !== undefined && isUntil(refusal.untilMs, REFUSED_MS, now())) {
      if (refusal.denial === undefined) throw new Unavailable('introspection', 'refused')
      throw new Denied(refusal.denial)
    }
    const outcome = await fetchOutcome(token, waitUntil)
    if ('verified' in outcome) return outcome.verified
    if ('denial' in outcome) throw new Denied(outcome.denial)
    throw copyOfFailure(outcome.failure)
  }
}

/** A token that needs a proof of possession must name its key (RFC 9449 section 6.2). */
function refuseTypes(claims: TokenClaims): void {
  const type = present(claims, 'token_type') ?? 'bearer'
  if (typeof type !== 'string') throw rejected('token_type')
  if (
    DPOP_TYPE.test(type)
      ? (readOwnMember(claims, 'cnf') ?? undefined) === undefined
      : !BEARER_TYPE.test(type)
  )
    throw rejected('token_type')
}

/** Reports whether the endpoint has responded, and its response cannot be read. */
const isUnreadable = (error: unknown): boolean =>
  error instanceof Unavailable &&
  error.dependency === 'introspection' &&
  error.fault === 'malformed'

/** Names the issuer's endpoint as the dependency, also if its metadata failed. */
function failureOf(cause: unknown): Unavailable {
  if (!(cause instanceof Unavailable))
    return new Unavailable('introspection', 'malformed', { cause })
  if (cause.dependency === 'introspection') return cause
  return new Unavailable('introspection', cause.fault, { cause })
}
