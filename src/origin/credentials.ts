/** The gateway's own credentials at an origin. `portcullis/credentials` contains the code behind them. */
import type { Breakers } from '../isolate/breakers.ts'
import type { Mistake } from '../problems/mistake.ts'
import type { Origin } from './origin.ts'

/** What credentials are read with and renewed with. */
export interface CredentialParts {
  /** Variables and bindings. */
  readonly environment: Readonly<Record<string, unknown>>
  readonly watch: Breakers['watch']
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** The fields of a route that can contradict credentials. */
export interface CredentialedRoute {
  readonly requestHeaders?: {
    readonly set?: Readonly<Record<string, string>>
    readonly remove?: readonly string[]
  }
  readonly forwardAuthorization?: boolean | readonly string[]
}

/** The result of `secret()` or `clientCredentials()`, for the field `credentials` of a route or an origin. */
export interface OriginCredentials {
  readonly feature: 'credentials'
  /** The feature of the gateway behind them. */
  readonly by: { readonly name: string }
  /** What the origin gets, in words and without a secret: `header X-Api-Key from ORIGIN_SECRET_ORDERS`. */
  readonly words: string
  /** Yields the variables that are missing or wrong, without their values. */
  mistakesIn(
    environment: CredentialParts['environment'],
  ): Iterable<readonly [variable: string, message: string]>
  /** Yields the mistakes of a route that uses them, with paths relative to the route. */
  conflictsWith(route: CredentialedRoute): Iterable<Mistake>
  /** Creates the function that adds the credentials to the requests of an origin. */
  connect(parts: CredentialParts): (origin: Origin) => Origin
}
