/** The authorization server at which a person logs in: its metadata, and calls to it. */
import * as oauth from 'oauth4webapi'
import { decodeToken } from '../decode.ts'
import { Failure, refused, undecided, usage } from '../failure.ts'
import { visible } from '../text.ts'
import type { Login } from './store.ts'

const LOOPBACK = /^(127\.\d+\.\d+\.\d+|localhost|\[::1\])$/
const TIMEOUT_MS = 15_000
const MAX_SHOWN = 300

export interface Server {
  readonly metadata: oauth.AuthorizationServer
  readonly client: oauth.Client
  readonly options: ReturnType<typeof optionsFor>
}

/** Options of each call. Plain http is for an issuer on this machine only. */
const optionsFor = (url: URL) => ({
  signal: () => AbortSignal.timeout(TIMEOUT_MS),
  ...(LOOPBACK.test(url.hostname) && { [oauth.allowInsecureRequests]: true }),
})

/** Fetches the metadata of the issuer: OpenID Connect Discovery, or else RFC 8414. */
export async function discover(issuer: string, clientId: string): Promise<Server> {
  const url = issuerOf(issuer)
  const options = optionsFor(url)
  const client = { client_id: clientId }
  for (const algorithm of ['oidc', 'oauth2'] as const) {
    const response = await oauth
      .discoveryRequest(url, { ...options, algorithm })
      .catch((error: Error) => {
        throw failureOf(error, issuer)
      })
    if (response.status === 404) continue
    const metadata = await oauth.processDiscoveryResponse(url, response).catch((error: Error) => {
      throw failureOf(error, issuer)
    })
    return { metadata, client, options }
  }
  throw refused('no_metadata', `${visible(issuer)} has no metadata of an authorization server`)
}

function issuerOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (
    url === undefined ||
    !(url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK.test(url.hostname)))
  )
    throw usage('--issuer must be an https URL, as in ISSUERS of the gateway')
  return url
}

export function loginOf(
  { metadata, client }: Pick<Server, 'metadata' | 'client'>,
  tokens: oauth.TokenEndpointResponse,
  before: Partial<Login> = {},
): Login {
  const { access_token: accessToken, refresh_token: refreshToken, expires_in: seconds } = tokens
  if (tokens.token_type !== 'bearer')
    throw refused('unexpected_answer', 'the issuer sent no bearer token')
  const claims = oauth.getValidatedIdTokenClaims(tokens) ?? decodeToken(accessToken)?.claims ?? {}
  const text = (name: string) => {
    const value = (claims as Readonly<Record<string, unknown>>)[name]
    return typeof value === 'string' ? value : undefined
  }
  return {
    issuer: metadata.issuer,
    clientId: client.client_id,
    tokenEndpoint: metadata.token_endpoint ?? '',
    revocationEndpoint: metadata.revocation_endpoint,
    accessToken,
    refreshToken: refreshToken ?? before.refreshToken,
    expiresAtMs: seconds === undefined ? undefined : Date.now() + seconds * 1_000,
    subject: text('sub') ?? before.subject,
    name: text('name') ?? text('preferred_username') ?? before.name,
    resource: before.resource,
    idTokenAlgorithms: metadata.id_token_signing_alg_values_supported,
  }
}

/** Returns the server of a login, without a call for its metadata. */
export const serverOf = (login: Login): Server => ({
  metadata: {
    issuer: login.issuer,
    token_endpoint: login.tokenEndpoint,
    ...(login.revocationEndpoint !== undefined && {
      revocation_endpoint: login.revocationEndpoint,
    }),
    ...(login.idTokenAlgorithms !== undefined && {
      id_token_signing_alg_values_supported: login.idTokenAlgorithms,
    }),
  },
  client: { client_id: login.clientId },
  options: optionsFor(new URL(login.issuer)),
})

/** Returns a failure with the words of the server, without control characters and without tokens. */
export function failureOf(error: unknown, issuer: string): Failure {
  if (error instanceof Failure) return error
  const of = visible(issuer)
  if (
    error instanceof oauth.ResponseBodyError ||
    error instanceof oauth.AuthorizationResponseError
  ) {
    const detail = `${error.error}${error.error_description ? `: ${error.error_description}` : ''}`
    return refused('login_refused', `${of}: ${bounded(detail)}`)
  }
  if (
    error instanceof oauth.OperationProcessingError ||
    error instanceof oauth.WWWAuthenticateChallengeError
  )
    return refused('unexpected_answer', `${of}: ${bounded(error.message)}`)
  const { name, message, cause } = error as Error
  const code = (cause as NodeJS.ErrnoException | undefined)?.code ?? message
  return undecided(
    'issuer_unreachable',
    `${of}: ${name === 'TimeoutError' ? 'no answer in time' : bounded(String(code))}`,
  )
}

const bounded = (text: string): string =>
  visible(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text)
