/** The authorization code flow as a user configures it, and its defaults. */

export interface AuthorizationCodeDefinition {
  /**
   * Words for permissions on the consent page: `{ 'orders:read': 'See your orders' }`. A permission
   * without words appears by its name.
   */
  readonly scopes?: Readonly<Record<string, string>>
  /** How long a client may refresh its tokens, in seconds. Default 2,592,000 (30 days). */
  readonly sessionSeconds?: number
  /**
   * Private-use schemes of redirect URIs without a domain name, such as `cursor`, for clients that
   * operators have not registered. Default none.
   */
  readonly redirectSchemes?: readonly string[]
  /**
   * Clients whose id is the URL of a document. Default: of every public host; with a
   * `profile` of `authorizationServer()`, none. `false`: none.
   */
  readonly documents?: false | DocumentsDefinition
  /**
   * Issuers of `ISSUERS` whose identity assertions (ID-JAG) give confidential clients a token for a
   * user, without a consent page: the company's provider has decided. Default none.
   */
  readonly identityAssertions?: readonly string[]
  /** Clients that register themselves. Default `false`. `true`: with the defaults. */
  readonly registration?: boolean | RegistrationDefinition
}

export interface DocumentsDefinition {
  /** Hosts of documents: `claude.ai`, or `*.example.com`. Default: every public host. */
  readonly allow?: readonly string[]
  /** Hosts that are refused, even if `allow` has them. Default none. */
  readonly deny?: readonly string[]
  /** Also accepts documents on this machine, by http, for development. Default false. */
  readonly loopback?: boolean
}

export interface RegistrationDefinition {
  /** Registrations of one address in an hour. Default 20. */
  readonly perAddress?: number
  /** How long a client is kept that no user has allowed, in seconds. Default 86,400. */
  readonly unusedSeconds?: number
}

export const DEFAULT_SESSION_SECONDS = 2_592_000
export const DEFAULT_REGISTRATION: Required<RegistrationDefinition> = {
  perAddress: 20,
  unusedSeconds: 86_400,
}
