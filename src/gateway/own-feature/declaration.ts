/** Types of a feature that a user writes: what it declares, and what it creates. */
import type { Context, MiddlewareHandler } from 'hono'
import type { $ZodObject, $ZodShape, $ZodType, output } from 'zod/v4/core'
import type { Principal } from '../../access/principal.ts'
import type { Denied } from '../../errors.ts'
import type { DescribeStage } from '../../middleware/in-order.ts'
import type { Method, PolicyRoute } from '../../policy/policy.ts'
import type { FeatureStatus } from '../../problems/reasons.ts'
import type { RedisCommand } from '../../redis/connection.ts'
import type { FeaturePermission } from '../../routes/admin/permissions.ts'

/** A problem of a feature. Its document has `type` `urn:portcullis:problem:<code>`, `title`, `status` and `code`. */
export interface FeatureProblemDeclaration {
  /** A failing dependency has none: throw `Unavailable`, or let `redis` throw it. */
  readonly status: FeatureStatus
  /** At most 60 characters. */
  readonly title: string
}

/** A counter. Its series are reported from the start, and added up over all isolates of all gateways. */
export interface FeatureMetricDeclaration {
  /** For `HELP`, at most 200 characters. */
  readonly help: string
  /** All values of each label. At most 100 series in all. Default: no labels. */
  readonly labels?: Readonly<Record<string, readonly string[]>>
}

/** What the calls and routes of a feature have in common. */
interface Described<Code extends string> {
  readonly method: Method
  /** Zod schema of the path parameters. Default: they are not checked. */
  readonly params?: $ZodObject
  /** Zod schema of the query, of texts. Default: any query is accepted, and ignored. */
  readonly query?: $ZodObject
  /** Zod schema of a JSON body. Default: a body is refused. */
  readonly body?: $ZodType
  /** For the OpenAPI description, as the next ones. */
  readonly summary: string
  readonly description?: string
  /** Describes the response without a problem. */
  readonly response: string
  /** Schema of its body. Only described, not checked. Default: it has none. */
  readonly reply?: () => $ZodType
  /** An example of the body. */
  readonly example?: object
  /** Codes of the feature's own problems that it can return. Default: none. */
  readonly problems?: readonly Code[]
}

/** A call of operators. It is served if the policy has `operators()`. */
export interface FeatureCall<Code extends string = string> extends Described<Code> {
  /** Below `/-/admin`: begins with the feature's name, `/front-door`. */
  readonly path: `/${string}`
  /** Begins with the feature's name: `portcullis:front-door:close`. */
  readonly permission: FeaturePermission
  /** Admits operators with a tenant as well; the call must confine them to it. Default false. */
  readonly tenants?: boolean
}

/** A route of the feature itself, behind the guards of a route of the policy. It has no origin. */
export interface FeatureRoute<Code extends string = string> extends Described<Code> {
  /** Begins with `/-/` and the feature's name: `/-/front-door`. */
  readonly path: `/-/${string}`
  /** Exactly one of `permission` and `anonymous` is required. */
  readonly permission?: string
  readonly anonymous?: true
  /** Names of limits of the policy. Default: none. */
  readonly limits?: readonly string[]
}

type OutputOf<Declared, Part extends string> = Declared extends {
  readonly [Name in Part]: $ZodType
}
  ? output<Declared[Part]>
  : undefined

/** A checked request of an operator. */
export interface FeatureCallRequest<Declared> {
  readonly params: OutputOf<Declared, 'params'>
  readonly query: OutputOf<Declared, 'query'>
  readonly body: OutputOf<Declared, 'body'>
  readonly operator: Principal
  /** The tenant of the operator. Undefined: it has none. */
  readonly tenant: string | undefined
  /**
   * Records the change in the audit event: `front-door.<action>`, where an action is at most 40 lower-case
   * letters and hyphens, and the id that was changed. Never a secret, and no personal data: erasures keep it.
   */
  changed(action: string, target: string): void
}

/** Adds to a counter. `labels` is required if the metric has labels. Default amount: 1. */
export interface FeatureCounter<Labels> {
  add(
    ...of: keyof Labels extends never
      ? [labels?: Labels, amount?: number]
      : [labels: Labels, amount?: number]
  ): void
}

type LabelsOf<Metric> = Metric extends {
  readonly labels: infer Labels extends Readonly<Record<string, readonly string[]>>
}
  ? { readonly [Label in keyof Labels]: Labels[Label][number] }
  : Readonly<Record<never, never>>

/** What a feature declares. */
export interface Declared {
  readonly variables: $ZodShape
  readonly problems: Readonly<Record<string, FeatureProblemDeclaration>>
  readonly metrics: Readonly<Record<string, FeatureMetricDeclaration>>
  readonly auditField: string
  readonly key: string
  readonly operatorCalls: Readonly<Record<string, FeatureCall>>
  readonly routes: Readonly<Record<string, FeatureRoute>>
}

export interface RefusalOptions {
  /** Further headers of the response. Default: none. */
  readonly headers?: Readonly<Record<string, string>>
  /** The precise reason, only for the audit event: at most 64 of `a-z 0-9 _`. Default: none. */
  readonly check?: string
}

/** The services of a feature, for each isolate. */
export interface OwnFeatureParts<Own extends Declared> {
  /** The parsed variables. */
  readonly variables: { readonly [Name in keyof Own['variables']]: output<Own['variables'][Name]> }
  /** Without a slash at its end. */
  readonly publicUrl: string
  /**
   * Sends commands to Redis in one round trip, and returns as many results: text, numbers, null or lists. Throws
   * `Unavailable` if Redis does not answer within `REDIS_TIMEOUT_MS` or refuses a command: the caller then gets 503. A
   * stage must not catch it to admit a request. A call without an answer is sent a second time. Give each key a TTL. Does
   * NOT check that commands use only keys of the feature.
   */
  redis(...commands: readonly RedisCommand[]): Promise<readonly unknown[]>
  /**
   * Returns the name of a key: the prefix of the gateway, then `feature:front-door:<name>`, with `:` and each part. Parts may be any text: they are
   * escaped, or hashed if they are longer than 160 characters.
   */
  key(name: Own['key'], ...parts: readonly string[]): Promise<string>
  readonly metrics: {
    readonly [Name in keyof Own['metrics']]: FeatureCounter<LabelsOf<Own['metrics'][Name]>>
  }
  /** Returns the error to throw in order to refuse a request with a problem of the feature. `detail` is for the caller. */
  refusal(code: keyof Own['problems'] & string, detail: string, options?: RefusalOptions): Denied
  /**
   * Records a text in the audit event of a request, as `fields` of the event: `frontDoor.<name>`. It is cut to 256
   * characters. An event has 16 fields at most.
   */
  record(c: Context, field: Own['auditField'], value: string): void
  /** Calls only addresses of the public internet. Has no timeout: give it a signal. */
  readonly fetchPublic: typeof fetch
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** A stage. It throws, returns a response, or calls `next`; everything else is a defect (500). */
export interface FeatureStage {
  readonly run: MiddlewareHandler
  /** For `explain`. Default: only the name of the feature is shown. Must not show credentials. */
  readonly describe?: DescribeStage
}

export interface FeatureStages {
  /** Before the caller is known. */
  readonly arrival?: FeatureStage
  /** After the caller was identified, is not revoked and within its limits; before its permission is checked. */
  readonly admitted?: FeatureStage
  /** After all guards, directly before the origin. */
  readonly response?: FeatureStage
}

type Handlers<Own extends Declared> = (keyof Own['operatorCalls'] extends never
  ? unknown
  : {
      /** A handler for each declared call. Returns the body of the reply, or undefined. */
      readonly operatorCalls: {
        readonly [Id in keyof Own['operatorCalls']]: (
          request: FeatureCallRequest<Own['operatorCalls'][Id]>,
        ) => unknown
      }
    }) &
  (keyof Own['routes'] extends never
    ? unknown
    : {
        /** A handler for each declared route. */
        readonly routes: {
          readonly [Id in keyof Own['routes']]: (c: Context) => Response | Promise<Response>
        }
      })

export type CreatedFeature<Own extends Declared> = Handlers<Own> & {
  /**
   * Returns the stages of a route of the policy. Default: none. `explains`: the stages run for an explanation and
   * must change nothing: no write to Redis, no count.
   */
  stagesOf?(route: PolicyRoute, how: { readonly explains: boolean }): FeatureStages | undefined
}
