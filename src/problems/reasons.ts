/** Why a request was refused, completely, for the audit trail. Responses have fewer details. */
import type { Check, RevokedBy } from './checks.ts'
import type { LoginDemand } from './step-up.ts'

/** The issuer of a token, and its subject: empty if the token names none. */
export interface Signer {
  readonly issuer: string
  /** At most 256 characters. */
  readonly subject: string
}

/** One finding of input validation. `path` is a JSON Pointer (RFC 6901) into `in`. */
export interface InputError {
  readonly in: 'params' | 'query' | 'headers' | 'body'
  readonly path: string
  readonly message: string
  /** The rule that the value breaks, in operators' calls. Absent if the message has words of its own. */
  readonly rule?: InputRule
}

/** A rule of a schema, as the issue of zod has it: `{ code: 'too_small', origin: 'number', minimum: 300 }`. */
export interface InputRule {
  readonly code: string
  readonly [name: string]: string | number | boolean | readonly (string | number)[]
}

export const SIGNATURE_CATEGORIES = [
  'sql_injection',
  'path_traversal',
  'command_injection',
  'ssrf_target',
  'cross_site_scripting',
  'nosql_injection',
  'ldap_injection',
  'template_injection',
] as const
export type SignatureCategory = (typeof SIGNATURE_CATEGORIES)[number]

/** An attack signature within its category: `sql_injection.break_out`. */
export type SignatureId = `${SignatureCategory}.${string}`

/** Error codes of the `/oauth/*` routes: RFC 6749 section 5.2, RFC 7009, RFC 8707, RFC 9449. */
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
  | AuthorizationErrorCode

/**
 * Error codes of `/oauth/authorize`, `/oauth/par` and `/oauth/register`: RFC 6749 section 4.1.2.1,
 * OpenID Connect Core section 3.1.2.6, RFC 7591 section 3.2.2, RFC 9126.
 */
export type AuthorizationErrorCode =
  | 'unsupported_response_type'
  | 'access_denied'
  | 'login_required'
  | 'unmet_authentication_requirements'
  | 'consent_required'
  | 'request_not_supported'
  | 'invalid_request_uri'
  | 'invalid_redirect_uri'
  | 'invalid_client_metadata'

/** The value that a check found in a token, and the expected one: printable ASCII, for audit only. */
export interface RejectionDetail {
  readonly seen: string
  readonly expected: string
  /** Whether the signature was verified before. Otherwise, any client can choose `seen`. */
  readonly verified: boolean
}

/** A problem that a feature declares. Its code is none of the gateway's own. */
export interface FeatureProblem {
  readonly code: string
  readonly status: FeatureStatus
  readonly title: string
}

/** Statuses that need no header of their own, and that no dependency causes. */
export type FeatureStatus = 400 | 402 | 403 | 404 | 409 | 410 | 412 | 422 | 423 | 425 | 428 | 451

/** Why a request was refused. `check` names the precise check that failed, for audit only. */
export type Denial =
  /** `proof`: a proof of possession (RFC 9449) is required. */
  | { readonly code: 'missing_token'; readonly proof?: true }
  /** `signer`: the signature, or the record of the credential, is valid. Such a credential is no guess. */
  | {
      readonly code: 'token_rejected'
      readonly check: Check<'token_rejected'>
      readonly detail?: RejectionDetail
      readonly signer?: Signer
    }
  | { readonly code: 'token_revoked'; readonly by: RevokedBy }
  /** The proof of possession (RFC 9449) is missing, or invalid for this request and token. */
  | { readonly code: 'invalid_dpop_proof'; readonly check: Check<'invalid_dpop_proof'> }
  /** The proof has no nonce of the gateway, or an expired one. `nonce` is a valid one. */
  | { readonly code: 'use_dpop_nonce'; readonly nonce: string }
  /** The request has more than one credential. */
  | { readonly code: 'ambiguous_credentials'; readonly check: Check<'ambiguous_credentials'> }
  /** A page of another origin may have sent the cookie with the token. */
  | { readonly code: 'cross_origin_request'; readonly check: Check<'cross_origin_request'> }
  /** The route needs a browser session: there is none, it has ended, or its login is not enough. */
  | {
      readonly code: 'sign_in_required'
      readonly check: Check<'sign_in_required'>
      /** What the login must be, if there is a valid session. */
      readonly demand?: LoginDemand
    }
  /** The login of the token's user is not of the kind, or not as recent, as the route demands. */
  | {
      readonly code: 'insufficient_user_authentication'
      readonly check: Check<'insufficient_user_authentication'>
      readonly demand: LoginDemand
      /** A proof of possession is required: the challenge is for DPoP. */
      readonly proof?: true
    }
  /** A login failed, or another request of the sign-in was not valid. */
  | { readonly code: 'sign_in_refused'; readonly check: Check<'sign_in_refused'> }
  | {
      readonly code: 'oauth_refused'
      readonly error: OAuthErrorCode
      readonly check: Check<'oauth_refused'>
    }
  | {
      readonly code: 'banned'
      readonly by: 'address' | 'subject'
      readonly retryAfterSeconds: number
    }
  | {
      readonly code: 'rate_limited'
      readonly limit: string
      readonly retryAfterSeconds: number
      /** The plan whose units are exhausted. */
      readonly plan?: string
      /** Of a quota: milliseconds since the epoch at which its day or month ends (UTC). */
      readonly untilMs?: number
    }
  | { readonly code: 'permission_missing'; readonly permission: string }
  /** The caller does not have the relation that the route requires: `order#viewer`. */
  | { readonly code: 'relation_missing'; readonly relation: string }
  /** The relation could not be determined, although every dependency responded. */
  | { readonly code: 'relation_unknown'; readonly why: string }
  /** The policy does not list this for the route. */
  | {
      readonly code: 'call_refused'
      readonly what: 'method' | 'tool' | 'prompt' | 'resource' | 'spelling' | 'definition'
    }
  | { readonly code: 'signature_matched'; readonly signature: SignatureId }
  | { readonly code: 'ambiguous_path'; readonly check: Check<'ambiguous_path'> }
  | { readonly code: 'malformed_request'; readonly check: Check<'malformed_request'> }
  | { readonly code: 'invalid_input'; readonly errors: readonly InputError[] }
  | { readonly code: 'payload_too_large'; readonly maxBytes: number }
  | {
      readonly code: 'unsupported_media_type'
      readonly expected: string
      /** The body has a coding, such as gzip. */
      readonly encoded: boolean
    }
  | { readonly code: 'not_found'; readonly check?: Check<'not_found'> }
  | { readonly code: 'method_not_allowed'; readonly allow: readonly string[] }
  /** Other requests changed the resource at the same time. */
  | { readonly code: 'conflict' }
  /** A stage or call of a feature refused, with a problem that the feature declares. */
  | {
      readonly code: 'refused_by_feature'
      readonly problem: FeatureProblem
      /** For the response. */
      readonly detail: string
      readonly headers?: Readonly<Record<string, string>>
      /** For audit only. */
      readonly check?: string
    }

/** What the gateway depends on: others, its own keys, and its own isolate, which can be overloaded. */
export type Dependency =
  | 'redis'
  | 'key_set'
  | 'introspection'
  | 'identity_provider'
  | 'authority'
  | 'origin'
  | 'audit_log'
  | 'signing_keys'
  | 'gateway'

/**
 * How a dependency failed.
 *
 * - `unreachable`: refused, reset, DNS, TLS.
 * - `timeout`: our deadline passed.
 * - `malformed`: the response violates its protocol.
 * - `too_large`: the header of the response is too large.
 * - `refused`: it returned an error of its own.
 * - `unauthorized`: it does not accept the gateway's own credentials.
 * - `no_key`: no key of the gateway that the call needs signs now.
 * - `overloaded`: too many requests are waiting.
 * - `stale`: its data is older than the request allows.
 */
export type Fault =
  | 'unreachable'
  | 'timeout'
  | 'malformed'
  | 'too_large'
  | 'refused'
  | 'unauthorized'
  | 'no_key'
  | 'overloaded'
  | 'stale'
