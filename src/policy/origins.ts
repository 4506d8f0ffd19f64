/** The origins of a checked policy. `portcullis/origins` contains the code behind them. */
import type { OriginCredentials } from '../origin/credentials.ts'
import type { OriginRouting } from '../origin/definition.ts'
import type { Mistake } from '../problems/mistake.ts'
import type { Feature, ListedFeature } from '../validators/feature.ts'

export interface OriginsFeature<OriginName extends string = string> extends Feature<'origins'> {
  readonly names: readonly OriginName[]
  /** Checks the definition. Throws `Misconfigured`. */
  compile(): PolicyOrigins
}

/** The fields of a route that concern its origin. */
export interface RoutingInput extends OriginRouting {
  readonly path: string
  readonly forwardAuthorization?: boolean | readonly string[]
  readonly credentials?: OriginCredentials
}

/** Checked origins. */
export interface PolicyOrigins {
  readonly by: ListedFeature
  /** Yields the mistakes of a route. */
  mistakesIn(route: RoutingInput): Iterable<Mistake>
  /** Returns the gateway's credentials at the origin of a route. */
  credentialsOf?(route: OriginRouting): OriginCredentials | undefined
  /** Returns the fields that a route gets from its origin if it does not have them. */
  defaultsOf(route: OriginRouting): { readonly originTimeoutMs?: number }
}
