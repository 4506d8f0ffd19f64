/**
 * The three outcomes of a guard: it returns (allowed), it throws {@link Denied} (the caller's
 * fault), or it throws {@link Unavailable} (a dependency's fault). Reasons are tagged here, in
 * full, for the audit trail; `problem-of.ts` maps them to a wire form that says less.
 */

/** What a token can be revoked by: its own id, or a cut-off that covers it. */
export type RevokedBy = 'token' | 'session' | 'subject' | 'client' | 'tenant'

/** One finding of input validation. `path` is a JSON Pointer (RFC 6901) into `in`. */
export interface InputError {
  readonly in: 'params' | 'query' | 'headers' | 'body'
  readonly path: string
  readonly message: string
}

/** What a signature is one of. */
export type SignatureCategory =
  | 'sql_injection'
  | 'path_traversal'
  | 'command_injection'
  | 'ssrf_target'
  | 'cross_site_scripting'

/** A rule within its category: `sql_injection.break_out`. */
export type SignatureId = `${SignatureCategory}.${string}`

/** What `/oauth/*` tells a client: RFC 6749 section 5.2, RFC 7009, RFC 8707, RFC 9449. */
export type OAuthErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'unsupported_token_type'
  | 'invalid_scope'
  | 'invalid_target'
  | 'invalid_dpop_proof'
  | 'use_dpop_nonce'

/** Why a request was refused. `check` names the precise check that failed, for audit only. */
export type Denial =
  /** `proof`: it must come with a proof of possession (RFC 9449). */
  | { readonly code: 'token_missing'; readonly proof?: true }
  | { readonly code: 'token_rejected'; readonly check: string }
  | { readonly code: 'token_revoked'; readonly by: RevokedBy }
  /** The proof of possession (RFC 9449) is missing or not good for this request and token. */
  | { readonly code: 'dpop_rejected'; readonly check: string }
  /** The proof lacks a nonce of the gateway, or has one that is too old; `nonce` is a good one. */
  | { readonly code: 'dpop_nonce_missing'; readonly nonce: string }
  /** A request to the authorization server. */
  | { readonly code: 'oauth_refused'; readonly error: OAuthErrorCode; readonly check: string }
  | {
      readonly code: 'banned'
      readonly by: 'address' | 'subject'
      readonly retryAfterSeconds: number
    }
  | {
      readonly code: 'rate_limited'
      readonly limit: string
      readonly retryAfterSeconds: number
    }
  | { readonly code: 'permission_missing'; readonly permission: string }
  /** The caller has not the relation that the route demands: `order#viewer`. */
  | { readonly code: 'relation_missing'; readonly relation: string }
  /** Nobody can tell whether the caller has it, though everything answered. */
  | { readonly code: 'relation_unknown'; readonly why: string }
  /** A method or a tool that the policy does not name for this route. */
  | { readonly code: 'call_refused'; readonly what: 'method' | 'tool' }
  /** The input reads like an attack; `signature` is the rule that says so. */
  | { readonly code: 'signature_matched'; readonly signature: SignatureId }
  | { readonly code: 'path_ambiguous'; readonly check: string }
  | { readonly code: 'request_malformed'; readonly check: string }
  | { readonly code: 'input_invalid'; readonly errors: readonly InputError[] }
  | { readonly code: 'body_too_large'; readonly maxBytes: number }
  | { readonly code: 'media_type_unsupported'; readonly expected: string }
  | { readonly code: 'route_unknown' }
  | { readonly code: 'method_unknown'; readonly allow: readonly string[] }

/** V8's own switch, which no standard library declares. */
const v8 = Error as typeof Error & { stackTraceLimit: number }

/**
 * The request is refused, and the caller can do something about it (4xx). It has no stack: its reason
 * tells where it comes from, and a flood of refusals would spend a tenth of its CPU on stacks.
 */
export class Denied extends Error {
  override readonly name = 'Denied'
  readonly denial: Denial

  constructor(denial: Denial, options?: ErrorOptions) {
    const frames = v8.stackTraceLimit
    v8.stackTraceLimit = 0
    super(denial.code, options)
    v8.stackTraceLimit = frames
    this.denial = denial
  }
}

/** What the gateway needs and does not own; and its own isolate, which can have too much to do. */
export type Dependency = 'redis' | 'key_set' | 'authority' | 'origin' | 'audit_log' | 'gateway'

/**
 * How a dependency failed: `unreachable` (refused, reset, DNS, TLS), `timeout` (our deadline
 * passed), `malformed` (it answered, but not in its protocol), `refused` (it answered with an
 * error of its own), `overloaded` (too many requests wait), `stale` (it knows less than the request
 * asks it to know).
 */
export type Fault = 'unreachable' | 'timeout' | 'malformed' | 'refused' | 'overloaded' | 'stale'

/**
 * A dependency did not answer in a way that decides anything: nobody knows whether the request is
 * allowed, so it is not (503; 502 and 504 for the origin). `cause` may hold a dependency's own
 * words: it is for debuggers and never for a response, a log or an audit event.
 */
export class Unavailable extends Error {
  override readonly name = 'Unavailable'
  readonly dependency: Dependency
  readonly fault: Fault
  readonly retryAfterSeconds: number
  /** It was not even asked, because it has failed too often just now. */
  readonly unasked: boolean

  constructor(
    dependency: Dependency,
    fault: Fault,
    options: ErrorOptions & {
      readonly retryAfterSeconds?: number
      readonly unasked?: boolean
    } = {},
  ) {
    super(`${dependency}: ${fault}`, options)
    this.dependency = dependency
    this.fault = fault
    this.retryAfterSeconds = options.retryAfterSeconds ?? DEFAULT_RETRY_AFTER_SECONDS
    this.unasked = options.unasked ?? false
  }
}

/** Short, because a breaker or a fail-over usually takes a few seconds. */
const DEFAULT_RETRY_AFTER_SECONDS = 5

/** The gateway itself is set up wrongly. The message names every mistake and stays in the logs. */
export class Misconfigured extends Error {
  override readonly name = 'Misconfigured'
  readonly mistakes: readonly string[]

  constructor(what: string, mistakes: readonly string[]) {
    super(`${what} is not valid:\n${mistakes.map((mistake) => `  - ${mistake}`).join('\n')}`)
    this.mistakes = mistakes
  }
}
