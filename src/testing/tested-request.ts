/** The requests of policy tests, their callers, and what operators do for them. */
import type { TokenSource } from '../validators/token-source.ts'
import type { TokenOptions } from './issuer.ts'
import type { RequestParts } from './request.ts'

/** A caller with a token of one of the trusted issuers. */
export interface Caller extends TokenOptions {
  /** Default: the first of the trusted issuers. */
  readonly issuer?: string
}

export interface TestedRequest extends RequestParts {
  /** The caller. Equal callers have the same token until it expires. Default: anonymous. */
  readonly as?: Caller | undefined
  /** A credential that is sent as it is, in place of a token of `as`. */
  readonly token?: string
  /** An API key of the gateway, in place of a token of `as`. Equal ones are the same key. */
  readonly apiKey?: TestedApiKey
  /**
   * Whether the client proves possession of a key (DPoP). A token of `as` is bound to this key, unless
   * its `claims` have a `cnf`. Default false.
   */
  readonly dpop?: boolean
  /** Where the credential is sent. Default `Authorization`. */
  readonly source?: TokenSource | undefined
  /** Host of the request, for routes with `host`: `api.example.com`. Default: the gateway's own. */
  readonly host?: string
  /** Client address. Default `192.0.2.1`. */
  readonly address?: string
}

/** An API key of the gateway. */
export interface TestedApiKey {
  readonly sub: string
  readonly roles?: readonly string[]
  readonly scope?: readonly string[]
  readonly tenant?: string
  /** The name of a plan of `plans()`. Default: the default plan. */
  readonly plan?: string
}

/** The party that gets a plan of `plans()`: one of the fields. */
export interface TestedPlan {
  readonly plan: string
  readonly sub?: string
  readonly client?: string
  readonly tenant?: string
  /** Default: the first of the trusted issuers. */
  readonly issuer?: string
}

/** Target of a revocation: one token, or all tokens that were issued until now to another target. */
export interface TestedRevocation {
  readonly token?: string
  readonly sub?: string
  readonly client?: string
  readonly tenant?: string
  readonly session?: string
  /** Default: the first of the trusted issuers. */
  readonly issuer?: string
}
