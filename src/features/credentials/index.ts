/** The gateway's own credentials at origins: `import { secret } from 'portcullis/credentials'`. */
import type { Feature } from '../../gateway/feature.ts'
import type { CredentialedRoute, OriginCredentials } from '../../origin/credentials.ts'
import type { OriginRequest } from '../../origin/origin.ts'
import { type Mistake, mistakeAt } from '../../problems/mistake.ts'
import { parseConfiguration } from '../../validators/configuration.ts'
import { failing } from '../../validators/environment.ts'
import { privateUrl } from '../../validators/variables.ts'
import { authorizedOrigin, type Credential } from './authorized-origin.ts'
import type { ClientCredentialsDefinition, SecretDefinition } from './definition.ts'
import { createHeaderCredential, createQueryCredential } from './placements.ts'
import { clientCredentialsSchema, secretSchema, secretVariable } from './schema.ts'
import { type TokenRequestOptions, tokenRequest } from './token-request.ts'
import { createTokenSource, type TokenSourceOptions } from './token-source.ts'

export type { OriginCredentials } from '../../origin/credentials.ts'
export type { ClientCredentialsDefinition, SecretDefinition } from './definition.ts'

/**
 * Returns a fixed secret that the gateway adds to each request for an origin: as a header, as a user and a
 * password (RFC 7617), or as a parameter of the query. A variable of the environment has its value. What a caller
 * sends in the same place does not reach the origin. Throws `Misconfigured` for a mistake.
 *
 * @example
 * ```ts
 * credentials: secret({ variable: 'ORIGIN_SECRET_ORDERS', header: 'X-Api-Key' })
 * ```
 */
export function secret(definition: SecretDefinition): OriginCredentials {
  const { variable, header, scheme, basic, query } = parseConfiguration(
    'The policy',
    secretSchema,
    definition,
    ['credentials'],
  )
  const name = basic === undefined ? header : 'Authorization'
  const place =
    query !== undefined
      ? `query parameter ${query}`
      : basic !== undefined
        ? `Basic credentials of ${basic}`
        : `header ${header}`
  return credentialsOf({
    header: name?.toLowerCase(),
    words: `${place} from ${variable}`,
    *mistakesIn(environment) {
      yield* mistakesInSecret(variable, environment)
    },
    credential({ environment }) {
      const value = String(environment[variable])
      if (query !== undefined) return createQueryCredential(query, value)
      if (basic !== undefined)
        return createHeaderCredential('authorization', `Basic ${base64(`${basic}:${value}`)}`)
      return createHeaderCredential(
        (header ?? '').toLowerCase(),
        scheme === undefined ? value : `${scheme} ${value}`,
      )
    },
  })
}

/**
 * Returns access tokens that the gateway fetches for itself from a token endpoint (RFC 6749 section 4.4), and adds
 * to each request for an origin as `Authorization: Bearer`. A token is cached in the isolate and renewed before
 * it expires. Concurrent requests share one call. Throws `Misconfigured` for a mistake.
 *
 * @example
 * ```ts
 * credentials: clientCredentials({
 *   tokenEndpoint: 'https://login.example.com/oauth/token',
 *   client: 'portcullis',
 *   variable: 'ORIGIN_SECRET_ORDERS',
 *   scope: 'orders',
 * })
 * ```
 */
export function clientCredentials(definition: ClientCredentialsDefinition): OriginCredentials {
  const options = parseConfiguration('The policy', clientCredentialsSchema, definition, [
    'credentials',
  ])
  const { variable, tokenEndpoint, tokenEndpointVariable = '', client } = options
  const endpointIn = (environment: Environment) =>
    environment[tokenEndpointVariable] ?? tokenEndpoint
  return credentialsOf({
    header: 'authorization',
    words: `access token of the client ${client}, with ${variable}`,
    *mistakesIn(environment) {
      yield* mistakesInSecret(variable, environment)
      const given = endpointIn(environment)
      if (given === undefined)
        yield [tokenEndpointVariable, 'is missing; it is the URL of a token endpoint']
      else
        for (const { message } of privateUrl.safeParse(given).error?.issues ?? [])
          yield [tokenEndpointVariable, message]
    },
    credential: ({ environment, watch, now }) =>
      createTokenCredential({
        ...options,
        endpoint: String(endpointIn(environment)),
        secret: String(environment[variable]),
        watch,
        now,
      }),
  })
}

type Environment = Parameters<OriginCredentials['mistakesIn']>[0]

interface Parts extends Pick<OriginCredentials, 'words' | 'mistakesIn'> {
  readonly header: string | undefined
  readonly credential: (parts: Parameters<OriginCredentials['connect']>[0]) => Credential
}

function credentialsOf({ credential, header, ...parts }: Parts): OriginCredentials {
  const by: Feature = {
    name: 'credentials',
    checksOf: (environment) =>
      [...parts.mistakesIn(environment)].map(([variable, message]) => failing(variable, message)),
  }
  return {
    feature: 'credentials',
    by,
    ...parts,
    conflictsWith: (route) => mistakesInRoute(header, route),
    connect: (connection) => authorizedOrigin({ credential: credential(connection) }),
  }
}

function* mistakesInSecret(variable: string, environment: Environment) {
  const given = environment[variable]
  if (given === undefined) yield [variable, 'is missing; it is a secret for an origin'] as const
  else
    for (const { message } of secretVariable.safeParse(given).error?.issues ?? [])
      yield [variable, message] as const
}

/** Returns the base64 of the UTF-8 bytes of a text (RFC 7617 section 2.1). */
const base64 = (text: string): string =>
  btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(''))

/** Yields the mistakes, with paths relative to the route. `header`: the lower-case name of the one that carries them. */
function* mistakesInRoute(
  header: string | undefined,
  { forwardAuthorization, requestHeaders = {} }: CredentialedRoute,
): Generator<Mistake> {
  if (header === undefined) return
  const conflict = (field: string, how: string) =>
    mistakeAt('conflict', [field], `${field}: ${how} the header ${header} of the credentials`)
  if (header === 'authorization' && forwardAuthorization)
    yield conflict('forwardAuthorization', 'cannot be combined with')
  const { set = {}, remove = [] } = requestHeaders
  if ([...Object.keys(set), ...remove].some((name) => name.toLowerCase() === header))
    yield conflict('requestHeaders', 'must not change')
}

type TokenCredentialOptions = TokenRequestOptions & Pick<TokenSourceOptions, 'watch' | 'now'>

const HEADER = 'authorization'
const SCHEME = 'Bearer '

/** Creates the credential that is an access token of the client of an authorization server. */
function createTokenCredential({ watch, now, ...options }: TokenCredentialOptions): Credential {
  const tokens = createTokenSource({
    fetchToken: tokenRequest(options),
    target: options.endpoint,
    watch,
    now,
  })
  const tokenOf = ({ headers }: OriginRequest) => (headers.get(HEADER) ?? '').slice(SCHEME.length)
  return {
    header: HEADER,
    async apply(request) {
      const token = await tokens.current(request.timeoutMs)
      return { ...request, headers: new Map(request.headers).set(HEADER, SCHEME + token) }
    },
    refused: (request) => tokens.drop(tokenOf(request)),
  }
}
