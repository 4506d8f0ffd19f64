/** Origins of a policy that has several, and how its routes use them. */

import type { OriginCredentials } from './credentials.ts'

/** Where an origin is, and how the gateway calls it. Requires `url`, `variable` or `binding`. */
export interface OriginDefinition {
  /** Base URL. Requests go to its authority, below its path. */
  readonly url?: string
  /**
   * Name of an environment variable with the URL: `ORIGIN_URL_ORDERS`. Its value takes precedence
   * over `url` and `binding`.
   */
  readonly variable?: string
  /** Name of a service binding: the origin is a Worker. Not on Node. */
  readonly binding?: string
  /**
   * `aud` of the assertions that this origin receives. Default: scheme and authority of the URL, or
   * `urn:portcullis:origin:<name>` for a binding. Two origins can have the same one only if both
   * name it here.
   */
  readonly audience?: string
  /** Default of `originTimeoutMs` of the routes, in milliseconds. Default 15,000. */
  readonly timeoutMs?: number
  /** Repeats failed requests. Default: none is repeated. */
  readonly retries?: RetryDefinition
  /**
   * `route`: each route has its own circuit breaker. `origin`: all routes share one, for an origin
   * that fails as a whole. Default `route`.
   */
  readonly breaker?: 'route' | 'origin'
  /** Another origin that gets a share of the callers. Default: none. */
  readonly canary?: CanaryDefinition
  /**
   * The gateway's own credentials at this origin: `secret()` or `clientCredentials()` from
   * `portcullis/credentials`. A canary has its own. Default: none.
   */
  readonly credentials?: OriginCredentials
}

/**
 * A request is repeated if its method is idempotent, it has no body, and the connection failed before
 * the headers of a response.
 */
export interface RetryDefinition {
  /** How often one request may be repeated, 1 to 3. Default 1. */
  readonly max?: number
  /** How many of 100 requests may be repeated, in an isolate. Default 10. */
  readonly percent?: number
}

export interface CanaryDefinition {
  /** Name of an origin without a canary. */
  readonly origin: string
  /** Share of the callers, 0 to 100, in steps of 0.01. */
  readonly percent: number
}

/** Changes of headers. `remove` comes before `set`. */
export interface HeaderChanges {
  /** Values by name. They replace what the message has. Default none. */
  readonly set?: Readonly<Record<string, string>>
  /** Names of headers that are removed. Default none. */
  readonly remove?: readonly string[]
}

/** The fields of a route that need the field `origins` of the policy. */
export interface OriginRouting<OriginName extends string = string> {
  /** Name in `origins`. Default: the origin of `ORIGIN_URL`, or of the binding `ORIGIN`. */
  readonly origin?: OriginName
  /**
   * Host of the requests: `api.example.com`, or `*.example.com` for any one label. Default: every
   * host.
   */
  readonly host?: string
  /** Beginning of `path` that the origin does not receive: `/v1`. Default none. */
  readonly stripPrefix?: string
  /** Path that the origin receives, with parameters of `path`: `/internal/orders/:id`. */
  readonly rewrite?: string
  /** Changes of the headers that the origin receives. */
  readonly requestHeaders?: HeaderChanges
  /** Changes of the headers of the origin's response. */
  readonly responseHeaders?: HeaderChanges
  /** Value that `aud` of the caller's token must contain. Default: any that its issuer allows. */
  readonly audience?: string
}
