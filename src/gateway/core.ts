/** The services of a gateway without its opt-in features. */
import type { Context } from 'hono'
import type { JSONWebKeySet } from 'jose'
import type { RelationChecker } from '../access/relations/checker.ts'
import type { AssertionSigner } from '../access/tokens/assertion.ts'
import type { DpopVerifier } from '../access/tokens/dpop.ts'
import type { References } from '../access/tokens/references.ts'
import type { AuditSink } from '../audit/event.ts'
import type { PublicOrigin } from '../http/public-origin.ts'
import type { Breakers } from '../isolate/breakers.ts'
import type { InFlightCount } from '../isolate/in-flight.ts'
import type { OriginCredentials } from '../origin/credentials.ts'
import type { GuardedOriginOptions } from '../origin/guarded-origin.ts'
import type { Origin, OriginOptions } from '../origin/origin.ts'
import type { Locate } from '../origin/public-location.ts'
import type { PolicyRoute } from '../policy/route.ts'
import type { ReadinessCheck } from '../routes/health.ts'
import type { Config } from '../validators/environment.ts'
import type { GuardServices } from './guard-services.ts'
import type { MetricsServices } from './metrics.ts'
import type { Runtime } from './runtime.ts'

/** An origin, and the signer of the assertions that are only for it. */
export interface ConnectedOrigin {
  /** It signs the assertions itself if {@link assertions} is undefined. */
  readonly origin: Origin
  /** Undefined without signing keys, and if each origin has its own. */
  readonly assertions: AssertionSigner | undefined
  /** Its base URL, to find it in its responses. Default: it is not looked for. */
  readonly base?: string
  /** Returns the function that finds the public URL of a URL of the origin, for the responses of a route. */
  readonly locateFor?: (route: PolicyRoute) => Locate
}

/** What connects a gateway with its origins. */
export interface Connections {
  /** Variables and bindings. */
  readonly environment: Readonly<Record<string, unknown>>
  /** Creates the port to an origin, with its circuit breakers. */
  readonly connect: (
    options: OriginOptions,
    breakers?: Pick<GuardedOriginOptions, 'breakerFor'>,
  ) => Origin
  /** Creates the signer for an audience. Undefined without signing keys. */
  readonly assertionsFor: (audience: string) => AssertionSigner | undefined
  /** Connects the origin of the environment. */
  readonly connectDefault: () => ConnectedOrigin
  /**
   * Creates the function that adds credentials of the gateway to the requests of an origin. Default: no origin
   * gets any, because none is called.
   */
  readonly authorize?: (credentials: OriginCredentials) => (origin: Origin) => Origin
}

/** What every gateway has, built once for each isolate. A test of a policy has it too. */
export interface Core extends GuardServices {
  readonly publicUrl: string
  /** Identifiers of the trusted issuers. */
  readonly issuers: readonly string[]
  /** Those of them whose tokens the gateway accepts. */
  readonly tokenIssuers: readonly string[]
  /** Returns the public keys that the gateway publishes at this moment. */
  readonly publicKeys: () => JSONWebKeySet
  /** The cache of references, which `admit` uses. */
  readonly references: References
  readonly proofs: DpopVerifier
  /** Undefined if the policy has no relations. */
  readonly relations: RelationChecker | undefined
  readonly auditSink: AuditSink
  /** Default: nothing. */
  readonly decided?: Runtime['decided']
  readonly addressOf: Runtime['addressOf']
  /** Returns the origin under which the client reached the gateway. */
  readonly publicOriginOf: (c: Context) => PublicOrigin
  /** Default: WebSockets of workerd. */
  readonly upgrades?: Runtime['upgrades']
  /** Default: as on Workers. */
  readonly streams?: Runtime['streams']
  /** Gateways with the same signing keys share it. Undefined without signing keys. */
  readonly sharedSecret: string | undefined
  readonly breakers: Breakers
  /** See `HealthOptions`. */
  readonly policyDigest?: string | undefined
  readonly metrics: Pick<MetricsServices, 'text'> & Pick<Config, 'metricsAccess'>
  readonly checks: readonly ReadinessCheck[]
  /** Returns the number of responses in progress. Default: they are not counted, as on Workers. */
  readonly openResponses?: (() => number) | undefined
  /** The requests in progress, shared by the gateways of a process. Default: each gateway counts its own. */
  readonly inFlight?: InFlightCount | undefined
}
