/** CORS rules as a policy writes them (https://fetch.spec.whatwg.org/#http-cors-protocol). */
import type { Feature, ListedFeature } from '../validators/feature.ts'

export interface CorsDefinition {
  /**
   * Origins with pages that may read responses: `https://app.example.com`, or
   * `https://*.example.com` for every name with one label more. `'*'`: pages of every origin.
   */
  readonly origins: '*' | readonly string[]
  /**
   * Lets pages send cookies and read the responses. Requires exact origins. A cookie with a token
   * must also list the origin, in the token sources. Default false.
   */
  readonly credentials?: boolean
  /**
   * Request headers that pages may send in addition to `Authorization`, `Content-Type`, `DPoP` and
   * those with a token. Default none.
   */
  readonly allowHeaders?: readonly string[]
  /**
   * Response headers that pages may read in addition to `RateLimit`, `RateLimit-Policy`,
   * `Retry-After`, `X-Request-Id`, `DPoP-Nonce` and `WWW-Authenticate`. Default none.
   */
  readonly exposeHeaders?: readonly string[]
  /** Seconds for which a browser may keep the response to a preflight request. Default 7,200. */
  readonly maxAgeSeconds?: number
  /** Allows preflight requests of pages on a public network to a gateway on a private one. Default false. */
  readonly privateNetwork?: boolean
  /**
   * Limits that count preflight requests, by the address of the client. Default: those of the
   * route. Each URL needs a preflight request of its own.
   */
  readonly limits?: readonly string[]
}

/** The result of `cors()`, for the field `cors` of a route. */
export interface CorsFeature extends Feature<'cors'> {
  readonly by: ListedFeature
  readonly definition: CorsDefinition
  /** Names of limits that the policy must define. */
  readonly limits: readonly string[] | undefined
}
