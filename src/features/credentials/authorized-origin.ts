/** Adds the gateway's own credentials to the requests of an origin. */
import { Unavailable } from '../../errors.ts'
import { isWithin } from '../../isolate/period.ts'
import type { Origin, OriginRequest } from '../../origin/origin.ts'
import { isRepeatable } from '../../origin/repeatable.ts'

export interface Credential {
  /** Lower-case name of the header that carries it. Undefined: a parameter of the query does. */
  readonly header: string | undefined
  /** Returns the request with the credential, in place of what the caller has sent there. Throws `Unavailable`. */
  apply(request: OriginRequest): Promise<OriginRequest>
  /** Returns the response without the credential. Default: the origin repeats none. */
  clean?(response: Response): Response
  /**
   * The origin refuses the credential of this request. Returns whether another one may be accepted, because
   * the next `apply` fetches it. Default: false.
   */
  refused?(request: OriginRequest): boolean
}

interface AuthorizedOriginOptions {
  readonly credential: Credential
  /** Milliseconds since the epoch. */
  readonly now?: () => number
}

const UNAUTHORIZED = 401
const MIN_PAUSE_MS = 60_000

/**
 * Creates the function that wraps an origin. `send` throws `Unavailable` (`origin`, `unauthorized`) if the origin
 * answers 401: only the operator can correct that. If another credential can be fetched, a request that may be
 * repeated is sent once more. On a route that forwards `Authorization` or `Cookie` of the caller, a 401 may be
 * about the caller, and is returned.
 */
export function authorizedOrigin({
  credential,
  now = () => Date.now(),
}: AuthorizedOriginOptions): (origin: Origin) => Origin {
  let reportedAtMs = Number.NEGATIVE_INFINITY

  /** Writes one line a minute for the operator. */
  function report(route: string | undefined): void {
    const nowMs = now()
    if (isWithin(reportedAtMs, MIN_PAUSE_MS, nowMs)) return
    reportedAtMs = nowMs
    console.error(JSON.stringify({ incident: 'origin_credentials_refused', route }))
  }

  return (origin) => ({
    async send(request) {
      const endMs = now() + request.timeoutMs
      // Not longer than the whole, also if the clock is set back meanwhile.
      const leftMs = () => Math.min(Math.max(endMs - now(), 1), request.timeoutMs)
      const concernsCaller =
        request.headers.has('cookie') ||
        (credential.header !== 'authorization' && request.headers.has('authorization'))
      for (let isFirst = true; ; isFirst = false) {
        const authorized = await credential.apply({ ...request, timeoutMs: leftMs() })
        const response = await origin.send({ ...authorized, timeoutMs: leftMs() })
        if (response.status !== UNAUTHORIZED || concernsCaller) {
          if (response.status === 101) return response
          return credential.clean?.(response) ?? response
        }
        response.body?.cancel().catch(() => {})
        const mayDiffer = credential.refused?.(authorized) === true
        if (isFirst && mayDiffer && isRepeatable(request)) continue
        report(request.route)
        throw new Unavailable('origin', 'unauthorized')
      }
    },
  })
}
