/** The `throttle` stage: limits the failed credential checks of each client address. */
import type { Context } from 'hono'
import type {
  AuthenticationFailures,
  RunningCheck,
} from '../access/abuse/authentication-failures.ts'
import type { Principal, TokenVerifier } from '../access/principal.ts'
import { type Credential, isReference, readCredential } from '../access/tokens/credential.ts'
import { reasonOfDenial } from '../audit/reason.ts'
import { Denied, Unavailable } from '../errors.ts'
import { createInFlightCount } from '../isolate/in-flight.ts'
import { createLruMap } from '../isolate/lru-map.ts'
import { sleep } from '../isolate/timers.ts'
import type { Denial, Signer } from '../problems/reasons.ts'
import type { AuthenticateOptions } from './authenticate.ts'
import {
  type CredentialCheck,
  type CredentialCheckVariables,
  clientAddressOf,
  observe,
  type PrincipalVariables,
  waitUntilOf,
} from './context.ts'
import { createMiddleware } from './create-middleware.ts'
import type { OpenStreamVariables } from './open-stream.ts'
import { receivedHeaders } from './request-headers.ts'

export interface ThrottleOptions
  extends Pick<AuthenticateOptions, 'references' | 'sources' | 'maxTokenBytes'> {
  readonly failures: AuthenticationFailures
  /** As for `authenticate`: tokens that it has cached as valid pass. */
  readonly verifier: Pick<TokenVerifier, 'recall' | 'opaqueIssuerOf' | 'signerOf'>
}

/** The limit name in the response and the audit event of a throttled request. */
export const AUTHENTICATION_FAILURES_LIMIT = 'authentication_failures'

/** Longer than the timeouts for key sets and Redis. Checks without I/O take less. */
const MAX_WAIT_MS = 10_000
/** The mean interval at which a waiting request polls for a free place. */
const MIN_POLL_MS = 5
const MAX_POLL_MS = 250
/** Polls of all waiting requests together. */
const POLLS_PER_MS = 4
/** A waiting request counts for 7 to 8 slots: the platform may have ended it without notice. */
const WAITING_SLOT_MS = 2_000

/** Characters of the refused references and opaque tokens that an isolate keeps with their signers. */
const MAX_REFUSED_CHARS = 500_000

/** Random: requests that arrived together would compete for one place and leave others empty. */
function pauseMs(waiting: number): number {
  const mean = Math.min(Math.max(waiting / POLLS_PER_MS, MIN_POLL_MS), MAX_POLL_MS)
  return mean * (0.5 + Math.random())
}

type Environment = {
  Variables: Partial<CredentialCheckVariables & PrincipalVariables & OpenStreamVariables>
}

/**
 * Counts the credentials of an address that `authenticate` or `admit` refuse (`token_rejected`,
 * `invalid_dpop_proof`). Refuses an address that has used up its failures before a signature is
 * verified or Redis is called: `Denied` (`rate_limited`). Requests without a credential pass. So does
 * a credential that this isolate has cached as valid: its owner may only share the address.
 *
 * A check in progress counts as a failure until its outcome is known, so a burst of forged tokens
 * costs no more checks than the same tokens one after another. In a burst of valid tokens that are
 * not cached, some wait for others; none is refused. Throws `Unavailable` (`gateway`, `overloaded`)
 * for a request that waits longer than 10 seconds.
 *
 * A credential that is authentic and refused, such as a signed token with another audience, is no guess.
 * It counts for its address together with its issuer and subject, and refuses (`rate_limited`) only further
 * credentials of that subject from that address.
 *
 * Must run after `clientAddress` and before `authenticate`. Does NOT count revoked tokens, missing
 * tokens or requests for a nonce: these are not guesses.
 *
 * @example
 * ```ts
 * const counter = createFailureCounter(rest)
 * const failures = createAuthenticationFailures({ ...DEFAULT_FAILURES, counter, now: Date.now })
 * app.use(clientAddress(), throttle({ failures, verifier }), authenticate({ verifier }))
 * ```
 */
export const throttle = ({
  failures,
  verifier,
  references,
  sources,
  maxTokenBytes,
}: ThrottleOptions) => {
  const forms = {
    references: references !== undefined,
    dpop: true,
    upstreamOf: verifier.opaqueIssuerOf,
    maxTokenBytes,
  }
  const waiting = createInFlightCount(WAITING_SLOT_MS)
  /** Signers of refused credentials whose text does not name them. */
  const refusedSigners = createLruMap<string, Signer>({
    maxSize: MAX_REFUSED_CHARS,
    sizeCalculation: (_signer, text) => text.length,
  })

  function credentialIn(header: string): Credential | undefined {
    try {
      return readCredential(header, forms)
    } catch (error) {
      if (error instanceof Denied) return undefined
      throw error
    }
  }

  function isKnown(header: string): boolean {
    const credential = credentialIn(header)
    if (credential === undefined) return false
    const recall = isReference(credential) ? references?.recall : verifier.recall
    return recall?.(credential.text) !== undefined
  }

  function signerIn(header: string): Signer | undefined {
    const credential = credentialIn(header)
    if (credential === undefined) return undefined
    const { kind, text } = credential
    return kind === 'jwt' ? verifier.signerOf?.(text) : refusedSigners.get(text)
  }

  function findRefusal(address: string, header: string): Denial | undefined {
    const retryAfterSeconds =
      failures.waitSeconds(address) ?? failures.waitSecondsOf(address, () => signerIn(header))
    if (retryAfterSeconds === undefined || isKnown(header)) return undefined
    return { code: 'rate_limited', limit: AUTHENTICATION_FAILURES_LIMIT, retryAfterSeconds }
  }

  /** Counts the failure of the request, if it is one. */
  function recordFailure(c: Context<Environment>, address: string, header: string): void {
    const { error } = c
    if (!(error instanceof Denied) || !isFailedCredential(error.denial)) return
    // The credential was valid, and ended during the wait for the origin.
    if (c.get('portcullis.openStream')?.ended === error) return
    const signer = signerOfRefused(error.denial, c.get('portcullis.principal'))
    failures.record(address, waitUntilOf(c), signer)
    const credential = signer && credentialIn(header)
    if (signer !== undefined && credential !== undefined && credential.kind !== 'jwt')
      refusedSigners.set(credential.text, signer)
  }

  function createCheck(address: string, header: string): CredentialCheck {
    let running: RunningCheck | undefined
    return {
      async begin() {
        const sinceMs = Date.now()
        for (let hasWaited = false; ; hasWaited = true) {
          const refusal = findRefusal(address, header)
          if (refusal !== undefined) throw new Denied(refusal)
          running = failures.begin(address)
          if (running !== undefined) return hasWaited
          const nowMs = Date.now()
          if (nowMs - sinceMs > MAX_WAIT_MS)
            throw new Unavailable('gateway', 'overloaded', {
              retryAfterSeconds: 1,
              shortCircuited: true,
            })
          // Polls: on Workers, a promise of another request might never settle.
          const slot = waiting.enter(Number.POSITIVE_INFINITY, nowMs)
          await sleep(pauseMs(waiting.count()))
          waiting.leave(slot)
        }
      },
      passed() {
        running?.end()
        running = undefined
      },
    }
  }

  return createMiddleware<Environment>(async function throttle(c, next) {
    const received = receivedHeaders(c)
    const header =
      sources === undefined
        ? received.get('authorization')
        : sources.read(received, c.req.raw)?.authorization
    if (header === undefined) return next()
    const address = clientAddressOf(c, 'throttle')
    const refusal = findRefusal(address, header)
    if (failures.mode === 'observe') {
      if (refusal !== undefined) observe(c, reasonOfDenial(refusal))
      await next()
      if (!isFailure(c.error)) return
      // Other requests may have failed in the meantime.
      const later = refusal === undefined ? findRefusal(address, header) : undefined
      if (later !== undefined) observe(c, reasonOfDenial(later))
      return recordFailure(c, address, header)
    }
    if (refusal !== undefined) throw new Denied(refusal)
    const check = createCheck(address, header)
    c.set('portcullis.credentialCheck', check)
    try {
      await next()
      // Counted before the place is freed, so that no other check starts in between.
      recordFailure(c, address, header)
    } finally {
      check.passed()
    }
  })
}

const isFailure = (error: unknown): boolean =>
  error instanceof Denied && isFailedCredential(error.denial)

export const isFailedCredential = ({ code }: Denial): boolean =>
  code === 'token_rejected' || code === 'invalid_dpop_proof'

/** Returns whose credential was refused although it is authentic. Undefined: it may be a guess. */
export function signerOfRefused(
  denial: Denial,
  principal: Principal | null | undefined,
): Signer | undefined {
  if (denial.code === 'token_rejected' && denial.signer !== undefined) return denial.signer
  // The principal of a request is set only after its credential was verified.
  return principal ? { issuer: principal.tokenIssuer, subject: principal.subject } : undefined
}
