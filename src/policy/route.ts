/** A checked row of the route table. */
import type { LimitRule } from '../access/admission/limit.ts'
import type { RelationRule } from '../access/relations/rule.ts'
import type { OriginSpelling } from '../http/path-reading.ts'
import type { InspectDefinition } from '../inspection/definition.ts'
import type { OriginCredentials } from '../origin/credentials.ts'
import type { OriginRouting } from '../origin/definition.ts'
import type { Mode } from '../validators/mode.ts'
import type { Method } from '../validators/policy.ts'
import type { CorsFeature } from './cors.ts'
import { DEFAULT_MAX_BODY_BYTES, DEFAULT_ORIGIN_TIMEOUT_MS } from './defaults.ts'
import type { AuthenticationDemand, LimitBy, RouteDefinition } from './definition.ts'
import type { McpFeature } from './mcp.ts'

/** A limit with its name, as `admit` uses it. */
export interface PolicyLimit extends LimitRule {
  readonly by: LimitBy
}

/** A limit of this name counts the calls of operators. */
export const OPERATORS_LIMIT = 'operators'

type Defaulted =
  | 'input'
  | 'maxBodyBytes'
  | 'originTimeoutMs'
  | 'forwardAuthorization'
  | 'forwardCookies'
  | 'webSocketOrigins'
  | 'dpop'
  | 'coalesce'

/** A checked row of the route table with its defaults. */
export interface PolicyRoute extends Required<Pick<RouteDefinition, Defaulted>>, OriginRouting {
  readonly method: Method
  readonly path: string
  /** Undefined: `loose`. */
  readonly originSpelling?: OriginSpelling | undefined
  /** Undefined: the route is open to anonymous callers. */
  readonly permission?: string | undefined
  /** Whether the permission is enforced or only observed. Undefined: enforced. */
  readonly permissionMode?: Mode | undefined
  /** The relation that is required in addition to the permission. */
  readonly relation?: RelationRule | undefined
  readonly limits: readonly PolicyLimit[]
  /** Undefined: pages of other origins may not read responses. */
  readonly cors?: CorsFeature | undefined
  /** Undefined: browser sessions are not accepted. */
  readonly session?: 'browser' | 'optional' | undefined
  /** Undefined: any login, or none. */
  readonly authentication?: AuthenticationDemand | undefined
  /** Undefined: no inspection. */
  readonly inspect?: InspectDefinition | undefined
  /** Undefined: no MCP server. */
  readonly mcp?: McpFeature | undefined
  /** Undefined: the origin gets no credentials of the gateway, or those of its entry in `origins`. */
  readonly credentials?: OriginCredentials | undefined
  /** Undefined: the default of the runtime. */
  readonly recheckSeconds?: number | undefined
  /** Undefined: 10. */
  readonly recheckGraceSeconds?: number | undefined
  /** Undefined: false. */
  readonly finishDownloads?: boolean | undefined
}

/** Fills in the defaults of a row. The gateway has rows of its own, which need no origin. */
export function completeRoute(
  row: Pick<PolicyRoute, 'method' | 'path'> & Partial<PolicyRoute>,
): PolicyRoute {
  return {
    ...row,
    limits: row.limits ?? [],
    input: row.input ?? {},
    maxBodyBytes: row.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES,
    originTimeoutMs: row.originTimeoutMs ?? DEFAULT_ORIGIN_TIMEOUT_MS,
    forwardAuthorization: row.forwardAuthorization ?? false,
    forwardCookies: row.forwardCookies ?? false,
    webSocketOrigins: row.webSocketOrigins ?? [],
    dpop: row.dpop ?? false,
    coalesce: row.coalesce ?? false,
  }
}

/** Returns the path of a route below its host, if it has one: `api.example.com/orders/:id`. */
export const pathOfRoute = ({ host = '', path }: Pick<PolicyRoute, 'host' | 'path'>): string =>
  host + path

/** Returns the name of a route, which no other route has: `GET /orders/:id`. */
export const nameOfRoute = (route: Pick<PolicyRoute, 'method' | 'host' | 'path'>): string =>
  `${route.method} ${pathOfRoute(route)}`
