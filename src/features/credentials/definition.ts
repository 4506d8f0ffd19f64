/** The gateway's own credentials at an origin, as a policy writes them. Neither contains a secret. */

/** A fixed secret. Requires exactly one of `header`, `basic` and `query`. */
export interface SecretDefinition {
  /** Name of the environment variable with the secret: `ORIGIN_SECRET_ORDERS`. */
  readonly variable: string
  /** Name of the header that carries it: `X-Api-Key`, or `Authorization` with a `scheme`. */
  readonly header?: string
  /** What stands before the secret in the header, such as `Bearer`. Default: nothing. */
  readonly scheme?: string
  /** User name of Basic authentication. The secret is the password. */
  readonly basic?: string
  /** Name of the parameter of the query that carries it. Servers often log queries: prefer a header. */
  readonly query?: string
}

/** The gateway as a client of an authorization server. Requires `tokenEndpoint` or `tokenEndpointVariable`. */
export interface ClientCredentialsDefinition {
  /** URL of the token endpoint: https, unless it is on a loopback address. */
  readonly tokenEndpoint?: string
  /** Name of an environment variable with this URL, which takes precedence: `ORIGIN_TOKEN_URL_ORDERS`. */
  readonly tokenEndpointVariable?: string
  /** `client_id` of the gateway there. */
  readonly client: string
  /** Name of the environment variable with the secret of the client: `ORIGIN_SECRET_ORDERS`. */
  readonly variable: string
  /** How the secret is sent. Default `client_secret_basic`. */
  readonly method?: 'client_secret_basic' | 'client_secret_post'
  /** Requested scopes, separated by spaces. Default: those of the authorization server. */
  readonly scope?: string
  /** Requested resource (RFC 8707). Default: none. */
  readonly resource?: string
  /** `audience` of the request, which some authorization servers require. Default: none. */
  readonly audience?: string
}
