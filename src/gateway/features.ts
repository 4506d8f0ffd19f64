/** What the opt-in features of a policy do for the gateway. */

import type { Context, ErrorHandler, Hono, MiddlewareHandler } from 'hono'
import type { Violations } from '../abuse/violations.ts'
import type { Admission } from '../admission/admission.ts'
import type { AuditDatabase } from '../audit/d1/database.ts'
import type { PolicyAuthorizer } from '../authorization/permissions.ts'
import type { CorsDefinition, CorsFeature } from '../cors/definition.ts'
import type { PublicOrigin } from '../http/public-origin.ts'
import type { TokenVerifier } from '../identity/principal.ts'
import type { Breakers } from '../isolate/breakers.ts'
import type { Tally } from '../isolate/tally.ts'
import type { McpDefinition } from '../mcp/definition.ts'
import type { AdmitOptions } from '../middleware/admit.ts'
import type { SessionStages } from '../middleware/browser-session.ts'
import type { GatewayVariables } from '../middleware/context.ts'
import type { ClientAuthenticator } from '../oauth/client-authenticator.ts'
import type { AuthorizationServerOptions, PublicClients } from '../oauth/options.ts'
import type { GrantHandlers } from '../oauth/token-endpoint.ts'
import type { SpanTally } from '../observability/tracing/exporter.ts'
import type { GuardedOriginOptions } from '../origin/guarded-origin.ts'
import type { Origin, OriginOptions, OriginRequest } from '../origin/origin.ts'
import type { Locate } from '../origin/public-location.ts'
import type { McpFeature } from '../policy/mcp.ts'
import type { PolicyOrigins } from '../policy/origins.ts'
import type { Policy, PolicyLimit, PolicyRoute } from '../policy/policy.ts'
import type { PolicyRelations } from '../policy/relations.ts'
import type { RedisConnection } from '../redis/connection.ts'
import type { RelationChecker } from '../relations/checker.ts'
import type { RelationCheck } from '../relations/redis/check.ts'
import type { AdminCall, CallGroup } from '../routes/admin/call.ts'
import type { OAuthEndpoint } from '../routes/oauth/routes.ts'
import type { Operation } from '../routes/openapi/operation.ts'
import type { OpenApiOptions } from '../routes/openapi/routes.ts'
import type { RenderPage } from '../routes/sign-in/page.ts'
import type { ProtectedResource } from '../routes/well-known.ts'
import type { SignedInUsers } from '../sign-in/signed-in-user.ts'
import type { AssertionSigner } from '../tokens/assertion.ts'
import type { DpopVerifier } from '../tokens/dpop.ts'
import type { References } from '../tokens/references.ts'
import type { IssuerCalls } from '../tokens/verifier.ts'
import type { Config, EnvironmentCheck, FeatureVariables } from '../validators/environment.ts'
import type { ListedFeature } from '../validators/feature.ts'

/** A feature of the policy's list `features`, as its function creates it. */
export interface GatewayFeature extends ListedFeature {
  /** The variables of the environment that only features use. Several features may share them. */
  readonly variables?: FeatureVariables
  /** Creates the services of the feature, once for each isolate. */
  services(parts: FeatureParts): FeatureServices
  /** Of `introspection()`: creates the calls to issuers that verify their tokens themselves. */
  issuerCalls?(config: Config, parts: CallParts): IssuerCalls
  /** Of `authorizationCode()`: creates what completes `authorizationServer()`. */
  codeFlow?(parts: FeatureParts): CodeFlow
  /** Creates calls of operators that exist only with the feature. */
  operatorCalls?(parts: FeatureParts): CallGroup
  /** The longest life of the sessions that the feature starts. Revocations are stored for as long. */
  readonly sessionSeconds?: number
}

/** What `authorizationCode()` adds to the authorization server. */
export interface CodeFlow {
  readonly publicClients: PublicClients
  readonly grants: (options: AuthorizationServerOptions) => GrantHandlers
  /** Members of the metadata. */
  readonly metadata: object
  readonly endpoints: (
    options: AuthorizationServerOptions,
    authenticate: ClientAuthenticator,
  ) => {
    readonly forms: readonly OAuthEndpoint[]
    readonly apps: readonly Hono<{ Variables: GatewayVariables }>[]
  }
  /** Creates CORS for the endpoints that pages of every origin may call. */
  readonly forPages: (methods: string) => MiddlewareHandler
}

export interface CallParts {
  readonly watch: Breakers['watch']
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

export interface FeatureParts {
  readonly config: Config
  readonly policy: Policy
  readonly redis: RedisConnection
  readonly auditDb: AuditDatabase | undefined
  readonly verifier: TokenVerifier
  readonly proofs: DpopVerifier
  readonly admission: Admission
  readonly authorizer: PolicyAuthorizer
  readonly relations: RelationServices | undefined
  readonly spanTally: SpanTally
  /** The isolate's cache of references, which `admit` uses. */
  readonly references: References
  /** Returns the origin under which the client reached the gateway. */
  readonly publicOriginOf: (c: Context) => PublicOrigin
  readonly watch: Breakers['watch']
  /** Calls only addresses of the public internet. */
  readonly fetchPublic: typeof fetch
  /** Returns the `Services` of the gateway, for use after its start. */
  readonly services: () => FeatureServices
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** What features add to the gateway. Each member comes from one feature, and is absent without it. */
export interface FeatureServices {
  /** From `operators()`: calls behind the guards of a route. */
  readonly operatorCalls?: readonly AdminCall[]
  /** From `authorizationServer()`; absent also without signing keys. */
  readonly authorizationServer?: AuthorizationServerRoutes
  /** From `authorizationCode()`: describes its endpoints for `openapi()`. */
  readonly describedOperations?: () => readonly Operation[]
  /** From `openapi()`: creates the routes below `/-` that describe the gateway's own calls. */
  readonly description?: (described: OpenApiOptions) => Hono
  /** From `signIn()`: renders pages for people in the style of the policy. */
  readonly renderPage?: RenderPage
  /** From `otlp()`; absent also without a trace collector. */
  readonly spans?: SpanServices
  /** From `signIn()`: the users of browsers, for other pages of the gateway. */
  readonly signedInUsers?: SignedInUsers
  /** From `signIn()`. */
  readonly signIn?: SignInServices
}

export interface SignInServices {
  /** The pages and endpoints of the sign-in. They come after `audit` and `clientAddress`. */
  readonly routes: Hono<{ Variables: GatewayVariables }>
  /** Describes the calls of signed-in users. */
  operations(): readonly Operation[]
  /**
   * Returns the stages of a route. Undefined: it accepts no sessions. With `references`, for
   * explanations, the stages use this cache, and neither renew the session nor refresh its tokens.
   */
  stagesOf(route: PolicyRoute, references?: References): SessionStages | undefined
  /** Names of its cookies, which are never forwarded to an origin; `login-*` is every name that begins so. */
  readonly cookies: readonly string[]
  /** Keeps an origin from setting these cookies. Comes directly before the origin. */
  readonly ownCookies: readonly MiddlewareHandler[]
}

export interface AuthorizationServerRoutes {
  /** Its metadata, below `/.well-known`. */
  readonly metadata: Hono
  /** Its endpoints. They come after `audit` and `clientAddress`, and authenticate clients themselves. */
  readonly endpoints: Hono<{ Variables: GatewayVariables }>
}

export interface SpanServices {
  /** Share of the traces that begin here which is recorded: 0 to 1. */
  readonly sampleRatio: number
  /** Exports the spans of a request. Comes after `requestId`. */
  readonly trace: MiddlewareHandler
}

export function featuresOf({ features }: Pick<Policy, 'features'>): readonly GatewayFeature[] {
  // Only the function of a feature creates an object with its name.
  return features as readonly GatewayFeature[]
}

export interface RelationParts extends CallParts {
  readonly redis: RedisConnection
  readonly tally: Tally
}

export interface RelationServices {
  /** Runs inside the admission call. Undefined if Redis does not decide relations. */
  readonly check: RelationCheck | undefined
  /** Decides relations for `admit` and `authorize`. */
  readonly checker: RelationChecker
  /** Of operators, about relations. */
  readonly calls: CallGroup
}

export interface GatewayRelations extends PolicyRelations {
  /** Those of its external decision point. */
  readonly variables: FeatureVariables | undefined
  /**
   * Throws `Misconfigured` if the policy names a policy decision point that the environment does not
   * configure, or does not determine the accepted issuers.
   */
  services(config: Config, parts: RelationParts): RelationServices
}

export function relationsOf({
  relations,
}: Pick<Policy, 'relations'>): GatewayRelations | undefined {
  // Only relations() creates compiled relations.
  return relations as GatewayRelations | undefined
}

export interface CorsParts {
  readonly routes: readonly PolicyRoute[]
  readonly limits: ReadonlyMap<string, PolicyLimit>
  /** Names of the headers with tokens, besides `Authorization`. */
  readonly tokenHeaders: readonly string[]
  readonly admission: Admission
  /** Undefined: no caller is banned automatically. */
  readonly violations: Violations | undefined
  /** The error handler of the gateway. */
  readonly onError: ErrorHandler
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

export interface CorsServices {
  /** Adds headers to responses. Comes before every stage that may refuse. */
  readonly headers: MiddlewareHandler
  /** Creates the handler of OPTIONS for the path of a route, with or without rules. */
  preflightOf(route: PolicyRoute): MiddlewareHandler
}

export interface GatewayCors extends CorsFeature {
  readonly definition: CorsDefinition
  /** Creates the services of all rules of the policy, once for each isolate. */
  services(parts: CorsParts): CorsServices
}

/** Returns the services of the routes' CORS rules; undefined if no route has rules. */
export function corsServices(parts: CorsParts): CorsServices | undefined {
  // Only cors() creates the rules of a route.
  const [rules] = parts.routes.flatMap(({ cors }) => (cors as GatewayCors | undefined) ?? [])
  return rules?.services(parts)
}

export interface McpParts {
  readonly features: Policy['features']
  readonly routes: readonly PolicyRoute[]
  readonly limits: ReadonlyMap<string, PolicyLimit>
  /** The relations of the policy. */
  readonly ruleOf: PolicyRelations['ruleOf'] | undefined
  readonly checker: RelationChecker | undefined
  readonly authorizer: PolicyAuthorizer
  /** Describes the gateway as a protected resource. */
  readonly resource: ProtectedResource
  /** Gateways with the same keys share it. Undefined without signing keys. */
  readonly sharedSecret: string | undefined
  /** Returns the readmission of a route. */
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** The guards of a route before an MCP server. */
export interface McpGuards {
  /** Comes before the caller is known. */
  readonly transport: MiddlewareHandler
  /** Creates the stage `admit`. */
  admitBy(options: AdmitOptions): MiddlewareHandler
  /** Creates the stage `inspect`, before another one. */
  inspection(next: MiddlewareHandler | undefined): MiddlewareHandler
  /** Guards the response. Comes before the proxy. */
  readonly response: MiddlewareHandler
}

export interface McpServices {
  /** Metadata of the servers as protected resources, below `/.well-known`. */
  readonly metadata: Hono
  guardsOf(route: PolicyRoute): McpGuards | undefined
}

export interface GatewayMcp extends McpFeature {
  readonly definition: McpDefinition
  /** Creates the services of all MCP servers of the policy, once for each isolate. */
  services(parts: McpParts): McpServices
}

/** Returns the services of the routes' MCP servers; undefined if there are none. */
export function mcpServices(parts: McpParts): McpServices | undefined {
  // Only mcp() creates them.
  const [server] = parts.routes.flatMap(({ mcp }) => (mcp as GatewayMcp | undefined) ?? [])
  return server?.services(parts)
}

/** An app of the gateway: each has its own router, and all share the rest. */
type App = Hono<{ Variables: GatewayVariables }>

/** An origin, and the signer of the assertions that are only for it. */
export interface ConnectedOrigin {
  /** It signs the assertions itself if {@link assertions} is undefined. */
  readonly origin: Origin
  /** Undefined without signing keys. */
  readonly assertions: AssertionSigner | undefined
  /** Its base URL, to find it in its responses. Default: it is not looked for. */
  readonly base?: string
}

export interface OriginParts {
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
  readonly unnamed: () => ConnectedOrigin
}

export interface OriginServices {
  /** Returns the guards of a route that come after the admission. */
  guardsOf(route: PolicyRoute): readonly MiddlewareHandler[]
  /** Returns what names the origin of a caller; undefined if all callers have that of the route. */
  originOf(
    route: PolicyRoute,
  ): ((request: Pick<OriginRequest, 'caller' | 'address'>) => string) | undefined
  /** Returns the function that finds the public URL of a URL of an origin, for the responses of a route. */
  locateFor(route: PolicyRoute): Locate
  /** Returns the app for all hosts. `appOf` creates an app of some routes of the policy. */
  byHost(appOf: (routes: readonly PolicyRoute[]) => App): App
}

export interface GatewayOrigins extends PolicyOrigins {
  /** Returns checks that fail for each variable or binding that is missing or wrong. */
  checksOf(
    environment: OriginParts['environment'],
    routes: readonly PolicyRoute[],
  ): readonly EnvironmentCheck[]
  /** Throws `Misconfigured` if two origins have the same audience. */
  services(
    parts: OriginParts,
    routes: readonly PolicyRoute[],
  ): ConnectedOrigin & { readonly origins: OriginServices }
}

export function originsOf({ origins }: Pick<Policy, 'origins'>): GatewayOrigins | undefined {
  // Only origins() creates compiled origins.
  return origins as GatewayOrigins | undefined
}
