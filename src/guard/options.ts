/** The options of `portcullis()`. */
import type { AbuseDefinition } from '../access/abuse/definition.ts'
import type { createRedisCallerStore } from '../access/admission/redis/store.ts'
import type { Revocations } from '../access/revocation/revocation.ts'
import type { AuditSink } from '../audit/event.ts'
import type { GuardStores } from '../gateway/guard-services.ts'
import type { ConnectRedis } from '../gateway/runtime.ts'
import type { PresetName } from '../identity-providers/presets.ts'
import type {
  LimitDefinition,
  LimitGroup,
  NamedLimit,
  RevocationDefinition,
} from '../policy/definition.ts'
import type { Mistake } from '../problems/mistake.ts'
import type { RedisConnection } from '../redis/connection.ts'
import type { IssuerFields } from '../validators/issuer-input.ts'
import type { LimitText } from '../validators/limit.ts'

/**
 * A trusted issuer of access tokens. Every field except `issuer` and `audience` has a default; where
 * the preset has one of these two, it may be undefined.
 */
export interface IssuerOptions extends Partial<Omit<IssuerFields, 'issuer' | 'audience'>> {
  /** The identity provider. Its preset has defaults of the other fields. */
  readonly preset?: PresetName
  /** `iss` of its tokens. */
  readonly issuer: string | undefined
  /** `aud` of the tokens that this app accepts. */
  readonly audience: string | readonly string[] | undefined
}

/** The REST address of an Upstash Redis. */
export interface RedisOptions {
  readonly url: string | undefined
  readonly token: string | undefined
  /** The beginning of all keys, such as `pc-staging:`. Default: `DEFAULT_KEY_PREFIX`. */
  readonly keyPrefix?: string
  /** Deadline of a call. Default 250 ms. */
  readonly timeoutMs?: number
}

/**
 * Port: a client of the app, such as `redis()` from `portcullis/redis`. `keys` has the default prefix, unless
 * the client has others. With `connect`, the guard has a circuit breaker; otherwise the client needs its own, and
 * a deadline.
 */
export type RedisClient = Pick<RedisConnection, 'send'> &
  Partial<RedisConnection> & {
    readonly connect?: ConnectRedis
    /** Creates the store of callers. Default: the store of one server. */
    readonly admissionStore?: typeof createRedisCallerStore
    /** Returns mistakes of limits that it cannot count. Default: none. */
    readonly mistakesIn?: (limits: ReadonlyMap<string, NamedLimit>) => readonly Mistake[]
  }

/** Port: stores without Redis, for tests: `memoryStore()` from `portcullis/testing`. */
export interface StoresInMemory {
  readonly stores: GuardStores & { readonly revocations: Revocations }
  /** Milliseconds since the epoch: the clock of the guard. */
  now(): number
}

/** A value from the environment may be undefined in the types: the check at the start names it. */
export interface GuardOptions<
  LimitName extends string = string,
  Permission extends string = string,
  Source = never,
> {
  readonly issuers: readonly IssuerOptions[]
  /** The server, or a client that implements the port. In tests also `memoryStore()`. */
  readonly redis: RedisOptions | RedisClient | StoresInMemory
  /** Permissions of each role: `notes:read`, `notes:*` or `*`. Default: no role grants anything. */
  readonly roles?: Readonly<Record<string, readonly Permission[]>>
  /**
   * `100/min` counts by subject and fails closed; an object has all settings of a policy. The limit
   * `standard` counts every request, others where a route names them. Default: no limits.
   */
  readonly limits?: Readonly<Record<LimitName, LimitDefinition | LimitText | LimitGroup>>
  /** Throttling of bad credentials, and automatic bans. Every field has a default. */
  readonly abuse?: AbuseDefinition
  /** How soon a revocation takes effect. Default: on the next request. */
  readonly revocation?: RevocationDefinition
  /**
   * An open response of an authenticated caller, such as an event stream, ends at most this many seconds
   * after a revocation or a ban, 0 to 3,600. Default 2; in a Worker without `revocation.maxStalenessMs`
   * 30, because each check is a subrequest there. 0: it ends only when the token expires.
   */
  readonly recheckSeconds?: number
  /** A check that fails is repeated for this many seconds, 0 to 3,600, and then ends the response. Default 10. */
  readonly recheckGraceSeconds?: number
  /**
   * Modules declare routes after the first request with a valid token, as with `import()` in a handler. Every scope with the form
   * of a permission then narrows the roles of a token, because any of them may be a permission of such a
   * route. Default false: a late route with a new permission throws `Misconfigured`. `portcullis/fetch`: always true.
   */
  readonly lateRoutes?: boolean
  /** The largest body, unless a route has its own limit. Default 1 MiB. */
  readonly maxBodyBytes?: number
  /** Requests that may wait in one isolate; more are refused at once. Default 1,000. */
  readonly maxConcurrentRequests?: number
  /**
   * The longest credential of a request, in bytes: 2,048 to 65,536. Default 16,384. The server must accept
   * fields of this size: Node accepts 16 KiB for all of them, unless `maxHeaderSize` is larger.
   */
  readonly maxTokenBytes?: number
  /**
   * Heap that verified tokens may use in one isolate or process, in bytes: 1,048,576 to 4,294,967,296. The
   * least recently used ones are verified again. Default 41,943,040 (40 MiB), for 10,000 tokens of 500 characters.
   */
  readonly tokenCacheBytes?: number
  /** Receives an event for each decision. Default: writes it to the console. */
  readonly audit?: AuditSink
  /**
   * Returns the address of the client, from what the framework has: the context of Hono, or the request.
   * Default: `CF-Connecting-IP` in a Worker, the address of the connection in Node. Set it if the app is
   * behind another proxy.
   */
  readonly clientAddress?: (source: Source) => string | undefined
}

type NamesOf<Known> = Known extends unknown ? keyof Known : never

/** Forbids names that `Known` does not have. */
type Only<Given, Known> = Given extends unknown
  ? { readonly [Name in Exclude<keyof Given, NamesOf<Known>>]?: never }
  : never

/**
 * Forbids unknown names in the result of a function: TypeScript checks them only where an object is
 * assigned directly. A client of Redis may have more members.
 */
export type OnlyKnown<Given> = Only<Given, GuardOptions> & {
  readonly [Name in keyof Given & ('issuers' | 'redis')]: Name extends 'issuers'
    ? Given[Name] extends readonly (infer Issuer)[]
      ? readonly Only<Issuer, IssuerOptions>[]
      : unknown
    : Given[Name] extends RedisClient | StoresInMemory
      ? unknown
      : Only<Given[Name], RedisOptions>
}

/** The limit that counts every request. */
export const STANDARD_LIMIT = 'standard'

/** A name, or another text. A union with a plain string would drop the names from an editor's suggestions. */
export type Suggested<Name extends string> = Name | (string & Record<never, never>)
