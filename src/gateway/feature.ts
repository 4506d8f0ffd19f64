/** The one port of opt-in features. Nothing in a gateway knows a feature by its name. */

import type { ExecutionContext, Hono, MiddlewareHandler } from 'hono'
import type { RelationChecker } from '../access/relations/checker.ts'
import type { RelationCheck } from '../access/relations/redis/check.ts'
import type { IssuerCalls } from '../access/tokens/verifier.ts'
import type { GivenDatabase } from '../audit/sql/d1/database.ts'
import type { WaitUntil } from '../isolate/after-response.ts'
import type { Breakers } from '../isolate/breakers.ts'
import type { SpanTally, Tally } from '../isolate/tally.ts'
import type { AdmitOptions } from '../middleware/admit.ts'
import type { GatewayVariables } from '../middleware/context.ts'
import type { WatchOwn } from '../middleware/open-stream.ts'
import type { FeatureMetrics } from '../observability/metrics/catalogue.ts'
import type { Origin, OriginRequest } from '../origin/origin.ts'
import type { Policy, PolicyRoute } from '../policy/policy.ts'
import type { FeatureProblem } from '../problems/reasons.ts'
import type { RedisConnection } from '../redis/connection.ts'
import type { AdminCall, CallGroup } from '../routes/admin/call.ts'
import type { CallerStages } from '../routes/admin/frame.ts'
import type { ReadinessCheck } from '../routes/health.ts'
import type { Operation } from '../routes/operation.ts'
import type { Config, EnvironmentCheck, FeatureVariables } from '../validators/environment.ts'
import type { ListedFeature } from '../validators/feature.ts'
import type { ConnectedOrigin, Connections, Core } from './core.ts'
import type { Runtime } from './runtime.ts'

/**
 * A feature that a policy imports, in its list `features` or through one of its fields. Every member
 * but the name is optional. The gateway composes features in the order of the policy.
 */
export interface Feature extends ListedFeature {
  /** The variables of the environment that only features use. Several features may share them. */
  readonly variables?: FeatureVariables | undefined
  /** Its own problems, by code. */
  readonly problems?: Readonly<Record<string, Omit<FeatureProblem, 'code'>>>
  /** Its own metrics, by name. */
  readonly metrics?: FeatureMetrics
  /** Names of its keys in Redis, up to the first part that varies, without the prefix of the gateway. */
  readonly keys?: readonly string[]
  /** Permissions of its operators' calls. They are granted only by operators who have them. */
  readonly permissions?: readonly string[]
  /** Returns the routes and operators' calls that it adds, to describe the policy. */
  routesIn?(policy: Policy): readonly PolicyRoute[]
  /** Whether clients get tokens of the gateway, if it has signing keys. Default false. */
  readonly issuesTokens?: boolean
  /** The longest life of the sessions that the feature starts. Revocations are stored for as long. */
  readonly sessionSeconds?: number
  /** Returns checks that fail for each variable or binding that is missing or wrong. */
  checksOf?(environment: Connections['environment']): readonly EnvironmentCheck[]
  /** Returns the issuers of `ISSUERS` that publish no keys and issue no JWTs. */
  keylessIssuers?(config: Config): readonly string[]
  /** Creates the calls to issuers that verify their tokens themselves. */
  issuerCalls?(config: Config, parts: CallParts): IssuerCalls
  /** Creates the services of the relations of the policy. Throws `Misconfigured`. */
  relations?(config: Config, parts: RelationParts): RelationServices
  /** Creates what needs neither Redis nor network, once for each isolate. Tests of policies have it too. */
  guard?(parts: GuardParts): Contribution
  /** Takes the place of `create` in tests of policies, which have neither Redis nor network. */
  rehearse?(parts: GuardParts): Contribution
  /** Creates everything else, once for each isolate. Throws `Misconfigured`. */
  create?(parts: FeatureParts): Contribution
}

export interface CallParts {
  readonly watch: Breakers['watch']
  /** Milliseconds since the epoch. */
  readonly now: () => number
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

export interface GuardParts {
  readonly core: Core
  readonly policy: Policy
  /** Variables and bindings. */
  readonly environment: Connections['environment']
}

export interface FeatureParts extends Core, CallParts {
  readonly config: Config
  readonly policy: Policy
  readonly redis: RedisConnection
  /** Of relations that Redis decides. */
  readonly relationCheck: RelationCheck | undefined
  /** See `Runtime`. */
  readonly admissionStore?: Runtime['admissionStore'] | undefined
  /** See `Runtime`. */
  readonly reportedPlaceOf?: Runtime['reportedPlaceOf'] | undefined
  /** For `trailOf`, in the features that query the trail. */
  readonly auditDb: GivenDatabase | undefined
  readonly spanTally: SpanTally
  /** Returns the function that adds to a series of a metric that the feature declares. */
  readonly counter: (metric: string, labels: readonly string[]) => (amount: number) => void
  /** Calls only addresses of the public internet. */
  readonly fetchPublic: typeof fetch
  /** Returns what all features have contributed, and the calls behind the guards of a route. */
  readonly contributed: () => {
    readonly contributions: readonly Contribution[]
    readonly calls: readonly AdminCall[]
  }
}

/** An app of the gateway: each has its own router, and all share the rest. */
export type App = Hono<{ Variables: GatewayVariables }>

/** Services that a stage uses. An explanation has others than the gateway, without effects. */
export interface StageParts extends Pick<Core, 'admission' | 'violations' | 'references'> {
  /** Whether the stage must change nothing. */
  readonly explains: boolean
  /** For responses of a stage itself. */
  readonly watchOwn: WatchOwn
}

/** What a feature adds to a gateway. */
export interface Contribution {
  /**
   * Creates apps for paths of the gateway itself, after all features have contributed. Apps at `/` come
   * after `audit` and `clientAddress`; others have no stages.
   */
  readonly apps?: () => readonly PlacedApp[]
  /** Creates calls behind the guards of a route, after all features have contributed. */
  readonly calls?: () => readonly AdminCall[]
  /** Calls that exist only with an operators' API. */
  readonly operatorCalls?: readonly CallGroup[]
  /** Describes further paths for the description of the gateway. */
  readonly operations?: () => readonly Operation[]
  /** Work without a request. A runtime without timers runs it when it is scheduled. */
  readonly tasks?: readonly Task[]
  /** Further checks of readiness. */
  readonly checks?: readonly ReadinessCheck[]
  /** Exports the spans of requests. */
  readonly traces?: Traces
  /** Come before every stage that may refuse. */
  readonly around?: readonly MiddlewareHandler[]
  /** Names of cookies that no origin gets; `login-*` is every name that begins so. */
  readonly cookies?: readonly string[]
  /** Returns the stages of a route. Undefined: the feature has none for it. */
  stagesOf?(route: PolicyRoute, parts: StageParts): RouteStages | undefined
  /** Creates the handler of OPTIONS for the path of a route. Of several features, the first one counts. */
  preflightOf?(route: PolicyRoute, parts: Omit<StageParts, 'watchOwn'>): MiddlewareHandler
  /** Connects the origins. Of several features, the first one counts. Default: that of the environment. */
  readonly connect?: (connections: Connections) => ConnectedOrigin
  /** A further listener of the server. A gateway on another runtime than Node refuses to start. */
  readonly listener?: FurtherListener
  /** Returns the app for all hosts. `appOf` creates an app of some routes of the policy. */
  readonly dispatch?: (appOf: (routes: readonly PolicyRoute[]) => App) => App
}

/** Work that a gateway repeats. */
export interface Task {
  /** The pause between two runs. */
  readonly everySeconds: number
  /** Must not reject, and must end in bounded time. Several gateways may run it at the same time. */
  run(waitUntil: WaitUntil): Promise<void>
}

export type PlacedApp =
  | { readonly at: '/'; readonly app: App }
  | { readonly at: '/-' | '/.well-known'; readonly app: Hono }

export interface Traces {
  /** Share of the traces that begin here which is recorded: 0 to 1. */
  readonly sampleRatio: number
  /** Comes after `requestId`. */
  readonly trace: MiddlewareHandler
}

/** A further listener of the server, which answers only trusted proxies. Only on Node. */
export interface FurtherListener {
  /** For the log, such as `forward-auth`. */
  readonly name: string
  readonly host: string
  /** 0 selects a free port. */
  readonly port: number
  /** Creates what answers its requests. It never rejects. */
  open(parts: ListenerParts): ListenerGateway
}

export interface ListenerParts {
  /** Creates a gateway over the same services, without the paths of the gateway itself. */
  readonly createGateway: (changes: ListenerServices) => ListenerGateway
}

/** What a gateway behind a listener has instead of the services of the gateway. */
export interface ListenerServices extends Pick<Core, 'addressOf' | 'publicOriginOf' | 'upgrades'> {
  /** Takes the place of every origin. */
  readonly origin: Origin
  readonly routes: readonly PolicyRoute[]
}

export interface ListenerGateway {
  fetch(request: Request, bindings: object, context: ExecutionContext): Response | Promise<Response>
}

/** The stages of a route, in the order of the pipeline. */
export interface RouteStages extends CallerStages {
  /** Creates the stage `admit`. */
  readonly admit?: (options: AdmitOptions) => MiddlewareHandler
  /** Creates the stage `inspect`, before another one. */
  readonly inspect?: (next: MiddlewareHandler | undefined) => MiddlewareHandler
  /** Come directly before the origin. */
  readonly response?: readonly MiddlewareHandler[]
  /** Returns what names the origin of a caller. Undefined: all callers have the same. */
  readonly originOf?: ((request: Pick<OriginRequest, 'caller' | 'address'>) => string) | undefined
}

/** The features of a policy, each once: of its list, and those behind its fields and those of its routes. */
export function listFeatures({
  features,
  origins,
  relations,
  routes,
}: Pick<Policy, 'features' | 'origins' | 'relations' | 'routes'>): readonly Feature[] {
  const fields = [
    origins,
    relations,
    ...routes.flatMap(({ cors, mcp, credentials }) => [cors, mcp, credentials]),
  ]
  return [...new Set([...features, ...fields.flatMap((field) => field?.by ?? [])])]
}
