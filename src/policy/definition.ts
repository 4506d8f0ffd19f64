/** Types of the policy that a user writes: roles, limits and the route table. */
import type { $ZodType } from 'zod/v4/core'
import type { AbuseDefinition } from '../access/abuse/definition.ts'
import type { LeaseTerms } from '../access/admission/lease.ts'
import type { LimitEngine, Meter, OnUnavailable } from '../access/admission/limit.ts'
import type { LimitScope } from '../access/admission/limit-key.ts'
import type { Principal } from '../access/principal.ts'
import type { RelationDemand } from '../access/relations/definition.ts'
import type { OriginSpelling } from '../http/path-reading.ts'
import type { InspectDefinition } from '../inspection/definition.ts'
import type { OriginCredentials } from '../origin/credentials.ts'
import type { OriginRouting } from '../origin/definition.ts'
import type { Feature, ListedFeature } from '../validators/feature.ts'
import type { IdentityHeaders } from '../validators/identity-headers.ts'
import type { IssuerInput } from '../validators/issuer-input.ts'
import type { LimitText } from '../validators/limit.ts'
import type { Mode } from '../validators/mode.ts'
import type { Method } from '../validators/policy.ts'
import type { CorsFeature } from './cors.ts'
import type { McpFeature } from './mcp.ts'
import type { OriginsFeature } from './origins.ts'
import type { RelationsFeature } from './relations.ts'
import type { TokensDefinition } from './tokens.ts'

/** The input of a custom key function of a limit. */
export interface LimitSubject {
  readonly request: Request
  readonly principal: Principal | null
  /** The client's normalized address; IPv6 as its /64. */
  readonly address: string
}

/** A function may return any string: the gateway escapes or hashes it. */
export type LimitBy = LimitScope | ((of: LimitSubject) => string)

export interface LimitDefinition {
  /** Requests per window, or units if a request costs more than one. */
  readonly limit: number
  /** Length of the window in seconds, 1 to 86,400. */
  readonly windowSeconds: number
  /** Whose requests are counted together: those of one `key`, `subject`, `client`, `tenant` or `address`, or of one result of a function. */
  readonly by: LimitBy
  /** While Redis does not answer: `deny` (503) or `allow` the request. Each allowed one is audited. */
  readonly onUnavailable: OnUnavailable
  /** `observe`: counts without refusing; audit events record what it would refuse. Default `enforce`. */
  readonly mode?: Mode
  /** Default `exact`. `upstash()` from `portcullis/upstash` approximates. */
  readonly engine?: LimitEngine
  /** Units of an exact limit that one request costs, from 1 to the limit. Default 1. */
  readonly cost?: number
  /**
   * Units of an exact limit that an isolate may spend without calling Redis, and for how long.
   * Requires `revocation.maxStalenessMs`. Default: none, so every request calls Redis.
   */
  readonly lease?: LeaseTerms
}

/** Several limits with one name in routes: the result of `plans()` or `quotas()`. */
export interface LimitGroup extends Feature<'plans' | 'quotas'> {
  /** Returns the limits, of which `name` is the key in the policy's limits `all`. */
  limits(name: string, all: object): readonly NamedLimit[]
}

export interface NamedLimit extends LimitDefinition {
  readonly name: string
  /** The name of its group, which routes use. Default: its own name. */
  readonly group?: string
  readonly meter?: Meter
}

export interface PermissionDemand {
  /** `<thing>:<verb>`. */
  readonly name: string
  /** `observe`: authenticated callers without it pass; audit events record them. Default `enforce`. */
  readonly mode?: Mode
}

/**
 * zod schemas of a route's input. Except in `headers`, objects must be strict or loose:
 * `definePolicy` refuses schemas that drop unknown keys.
 */
export interface InputSchemas {
  /** The parameters of the path. Default: not checked. */
  readonly params?: $ZodType
  /** The parameters of the query. Default: not checked. */
  readonly query?: $ZodType
  /** The headers of the request. Default: not checked. */
  readonly headers?: $ZodType
  /** Requires a body of type `application/json` or `application/*+json`. With `z.optional`, a request may have none. */
  readonly body?: $ZodType
}

/** One row of the route table. Requires exactly one of `permission` and `anonymous`. */
export interface RouteDefinition<
  LimitName extends string = string,
  OriginName extends string = string,
> extends OriginRouting<OriginName> {
  /** The method. A `GET` route also answers `HEAD`. */
  readonly method: Method
  /** Hono pattern: `/orders/:id`, or `/files/*` for all paths below. */
  readonly path: string
  /**
   * How the origin compares the names in this path. Default `loose`: as any common server does.
   * Requests of other routes that the origin could read as requests of this route are refused,
   * unless those routes have the same requirements. `distinct-extensions`: `report.pdf` is not
   * `report`. `exact`: byte for byte.
   */
  readonly originSpelling?: OriginSpelling
  /** Required permission `<thing>:<verb>`, checked in roles and scopes. */
  readonly permission?: string | PermissionDemand
  /** Relation to an object that the caller must have in addition to the permission. */
  readonly relation?: RelationDemand
  /** Allows anonymous callers. A token that is presented must still be valid. */
  readonly anonymous?: true
  /** Names in `limits` of the policy: each of them counts a request. Default none. */
  readonly limits?: readonly LimitName[]
  /** Schemas of what the caller sends. A request that does not match is refused. Default: not checked. */
  readonly input?: InputSchemas
  /**
   * Pages of other origins that may read the responses: `cors()` from `portcullis/cors`. Default
   * none.
   */
  readonly cors?: CorsFeature
  /** Inspection of query and body; `{}` for the default settings. Default none. */
  readonly inspect?: InspectDefinition
  /** The MCP server behind the route: `mcp()` from `portcullis/mcp` sets it. Default none. */
  readonly mcp?: McpFeature
  /** Maximum size of the request body in bytes. Default 1 MiB; 0 forbids a body. */
  readonly maxBodyBytes?: number
  /** Timeout for the origin's response headers, in milliseconds. Default 15,000. */
  readonly originTimeoutMs?: number
  /**
   * Forwards the caller's verified `Authorization` header and `DPoP` proof to the origin. A list of
   * schemes forwards only these. The gateway verifies `Bearer` and `DPoP`. It leaves any other scheme,
   * such as `Basic`, to an origin that verifies credentials itself: only an anonymous route can name
   * it, and its caller is anonymous. Default false.
   */
  readonly forwardAuthorization?: boolean | readonly string[]
  /**
   * The gateway's own credentials at the origin: `secret()` or `clientCredentials()` from
   * `portcullis/credentials`. Not for a route whose origin in `origins` has credentials or a canary.
   * Default: none.
   */
  readonly credentials?: OriginCredentials
  /** Forwards the caller's `Cookie` header to the origin. Default false. */
  readonly forwardCookies?: boolean
  /** Origins (`https://app.test`) with pages that may open a WebSocket here. Default none. */
  readonly webSocketOrigins?: readonly string[]
  /**
   * Accepts browser sessions in addition to tokens. Needs `signIn()` from `portcullis/sign-in`. An
   * object is `'browser'` with the field `authentication`. `'optional'`, beside `anonymous: true`, names a
   * signed-in user to the origin; without a session, or with one that has ended, the caller is
   * anonymous. Default: only tokens.
   */
  readonly session?: 'browser' | 'optional' | AuthenticationDemand
  /**
   * What the login of the user must be, for tokens and for browser sessions (RFC 9470). A token meets it
   * with its claims `acr` and `auth_time`; an API key never does. Default: any login, or none.
   */
  readonly authentication?: AuthenticationDemand
  /** Requires a token that is bound to a key, with a DPoP proof (RFC 9449). Default false. */
  readonly dpop?: boolean
  /** Lets concurrent identical GET requests of one caller share one call. Default false. */
  readonly coalesce?: boolean
  /**
   * An open response or WebSocket of an authenticated caller ends at most this many seconds after the
   * caller is revoked or banned, 0 to 3,600. Default 2; on Workers without `revocation.maxStalenessMs`
   * 30, because each check is a subrequest there. 0: it ends only when the token expires.
   */
  readonly recheckSeconds?: number
  /**
   * A check that fails is repeated for this many seconds, 0 to 3,600, and then ends the response or the
   * WebSocket. Default 10.
   */
  readonly recheckGraceSeconds?: number
  /**
   * Lets a response that must end finish as long as its bytes pass. Event streams and WebSockets end
   * nevertheless. Use it only for responses that have an end. Default false.
   */
  readonly finishDownloads?: boolean
}

/** What the login of the user must be; otherwise, the user signs in again. */
export interface AuthenticationDemand {
  /**
   * Accepted authentication context classes (`acr`), 1 to 8, compared exactly, the preferred one first.
   * Default: any.
   */
  readonly acr?: readonly string[] | undefined
  /**
   * The longest time since the login at the provider, in seconds, 0 to 31,536,000. The login of a browser
   * session may be 5 s older. Default: any.
   */
  readonly maxAgeSeconds?: number | undefined
}

export interface RevocationDefinition {
  /**
   * Milliseconds, 0 to 60,000, for which a caller that was admitted before may still be admitted
   * after a revocation or ban. Default 0: every request calls Redis.
   */
  readonly maxStalenessMs?: number
}

export interface PolicyDefinition<
  RoleName extends string,
  LimitName extends string,
  OriginName extends string = string,
> {
  /** Permissions of each role: `orders:read`, `orders:*` or `*`. */
  readonly roles: Readonly<Record<RoleName, readonly string[]>>
  /** Also `plans()` and `quotas()` from `portcullis/plans`. */
  readonly limits: Readonly<Record<LimitName, LimitDefinition | LimitText | LimitGroup>>
  /** What callers may request. A request without a route is refused, and the origin is not called. */
  readonly routes: readonly RouteDefinition<NoInfer<LimitName>, NoInfer<OriginName>>[]
  /** Several origins: `origins()` from `portcullis/origins`. Default: one, of the environment. */
  readonly origins?: OriginsFeature<OriginName>
  /**
   * The gateway's own tokens. Every field has a default. Fields about issued tokens need
   * `authorizationServer()`.
   */
  readonly tokens?: TokensDefinition
  /** Protection against repeated violations. Every field has a default. */
  readonly abuse?: AbuseDefinition
  /** How soon a revocation takes effect. Every field has a default. */
  readonly revocation?: RevocationDefinition
  /** Between callers and objects: `relations()` from `portcullis/relations`. Default none. */
  readonly relations?: RelationsFeature
  /**
   * Trusted issuers of access tokens, without secrets: the result of `defineIssuers`. They are in place of the variable
   * `ISSUERS`; both together are a mistake. Default: those of the variable.
   */
  readonly issuers?: readonly IssuerInput[]
  /**
   * Issuers that use the same tenants as the gateway, in addition to the gateway itself. A tenant
   * of the same name at another issuer is a different tenant. Default: `relations.issuers`; without
   * it, the trusted issuer if there is only one, else none.
   */
  readonly tenantIssuers?: readonly string[]
  /**
   * Headers that a client cannot send to the origin, in addition to those that the gateway always
   * strips: `X-Tenant-Id`, or `X-Tenant-*` for every name with this prefix. Default none.
   */
  readonly stripHeaders?: readonly string[]
  /** Headers that a client can send to the origin although common servers trust them: `X-User-Id`. */
  readonly keepHeaders?: readonly string[]
  /**
   * Claims that the origin gets in headers, by the name of the header:
   * `{ 'X-Auth-Email': 'email', 'X-Auth-Groups': ['groups'] }`, with claim paths as in `ISSUERS`; or the
   * headers of another proxy, `'oauth2-proxy'` or `'pomerium'`. Values are percent-encoded, and lists separated by
   * commas, as in `X-Auth-Roles`. A client cannot send these names. A claim that is absent, an object, or longer than
   * 4,096 characters has no header. Tokens that the gateway issues have no such claims. Default none.
   */
  readonly identityHeaders?: IdentityHeaders
  /** `operators()`, `authorizationServer()`, `signIn()`, `openapi()`, `otlp()`, each from its own module. */
  readonly features?: readonly ListedFeature[]
  /**
   * URL of a page about errors: `type` of a problem is this URL with the code as its fragment, such as
   * `https://docs.example.com/errors#rate_limited`. Default: `urn:portcullis:problem:rate_limited`. Refusals before
   * the pipeline, such as of a request that is not valid HTTP, always have the URN.
   */
  readonly problemBaseUrl?: string
  /**
   * Maximum size of all header fields of a request, in bytes, 8,192 to 131,072. Default 32,768 on Node,
   * and 131,072 on Workers, which is the limit of Cloudflare. A larger header is 431 or 400.
   */
  readonly maxHeaderBytes?: number
  /** Requests that may wait in one isolate; more are refused at once. Default 1,000. */
  readonly maxConcurrentRequests?: number
  /**
   * The longest credential of a request, in bytes: from 2,048 to `maxHeaderBytes` less 8,192, so to
   * 24,576 by default. Default 16,384. Tokens that are not in a request header, such as ID tokens,
   * may have 64 KiB.
   */
  readonly maxTokenBytes?: number
  /**
   * Heap that verified credentials may use in one isolate or process, in bytes: 1,048,576 to
   * 4,294,967,296. Two thirds are for signed tokens, the rest for opaque tokens and API keys. The least
   * recently used ones are verified again. Default 62,914,560 (60 MiB), for 10,000 tokens of 500 characters.
   */
  readonly tokenCacheBytes?: number
  /**
   * Requests and responses that may be in progress in one process on Node, streams and WebSockets
   * included; more are refused at once. Default 20,000. Ignored on Workers.
   */
  readonly maxOpenResponses?: number
  /**
   * Seconds, 1 to 86,400, after which a connection ends on Node if bytes wait for its client and it
   * reads none of them, or if the body of a request is expected and no byte arrives. Default 60.
   * Ignored on Workers.
   */
  readonly clientStallSeconds?: number
}
