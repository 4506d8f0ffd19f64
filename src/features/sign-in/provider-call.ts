/** Calls to an OpenID Provider, and why they fail. */
import * as oauth from 'oauth4webapi'
import { type Denied, Unavailable } from '../../errors.ts'
import { BodyRefused, boundedText } from '../../http/bounded-text.ts'
import { JsonRefused, refuseAmbiguousJson } from '../../http/strict-json.ts'
import type { ProviderCheck } from '../../problems/checks.ts'
import { signInRefused } from './refused.ts'

const MAX_RESPONSE_BYTES = 262_144
const ERROR_CODE = /^[a-z_]{1,64}$/
/** Errors that say that the provider, not the user, has a problem (RFC 6749 section 4.1.2.1). */
const PROVIDER_FAULTS: readonly string[] = ['server_error', 'temporarily_unavailable']

/** Statuses that say nothing about the request: it is too slow, too early, or one of too many. */
const OVERLOADED: readonly number[] = [408, 425, 429]
/** A response that is no response of a token endpoint, such as a page of a proxy. */
const NO_RESPONSE: readonly unknown[] = [
  oauth.RESPONSE_IS_NOT_JSON,
  oauth.RESPONSE_IS_NOT_CONFORM,
  oauth.PARSE_ERROR,
]

/** The codes of `oauth4webapi`, without `OAUTH_`. */
// biome-ignore format: a table
const CHECKS: readonly ProviderCheck[] = [
  'http_request_forbidden', 'invalid_request', 'invalid_response', 'invalid_server_metadata',
  'json_attribute_comparison_failed', 'jwt_claim_comparison_failed', 'jwt_timestamp_check_failed',
  'jwt_userinfo_expected', 'key_selection_failed', 'missing_server_metadata',
  'request_protocol_forbidden', 'unsupported_operation',
]

/** Reads the whole response, of a bounded size. Does not follow redirects. */
export async function boundedFetch(
  url: string,
  init: oauth.CustomFetchOptions<string, BodyInit | null | undefined>,
): Promise<Response> {
  const { signal } = init
  try {
    const { method, headers, body } = init
    const response = await fetch(url, {
      method,
      headers,
      ...(body != null && { body }),
      redirect: 'manual',
      cache: 'no-store',
      signal: signal ?? null,
    })
    if (response.status >= 500 || OVERLOADED.includes(response.status)) {
      await response.body?.cancel()
      throw new Unavailable('identity_provider', 'refused')
    }
    const text = await boundedText(response.body, MAX_RESPONSE_BYTES)
    refuseAmbiguousJson(text)
    const { status, headers: fields } = response
    return new Response(text === '' ? null : text, { status, headers: fields })
  } catch (cause) {
    throw unavailable(cause, signal)
  }
}

export function unavailable(cause: unknown, signal?: AbortSignal): Unavailable {
  if (cause instanceof Unavailable) return cause
  const fault =
    cause instanceof BodyRefused ||
    cause instanceof JsonRefused ||
    cause instanceof oauth.OperationProcessingError
      ? 'malformed'
      : signal?.aborted || (cause instanceof Error && cause.name === 'TimeoutError')
        ? 'timeout'
        : 'unreachable'
  return new Unavailable('identity_provider', fault, { cause })
}

/**
 * Reports whether an error of an authorization response says that the provider does not accept the
 * configuration of the gateway as a client. Every other login fails in the same way.
 */
export const isOperatorsFault = (code: string): boolean => OPERATORS_FAULTS.includes(code)

const OPERATORS_FAULTS: readonly string[] = [
  ...['invalid_request', 'invalid_scope', 'unauthorized_client', 'unsupported_response_type'],
  ...['invalid_request_object', 'request_not_supported', 'request_uri_not_supported'],
  ...['registration_not_supported', 'invalid_client'],
]

/** Returns why a login failed: the provider's problem, or a refusal with the check that failed. */
export function classifyFailure(error: unknown, issuer: string): Denied | Unavailable {
  if (error instanceof oauth.AuthorizationResponseError) {
    const code = codeOf(error.error)
    if (PROVIDER_FAULTS.includes(code))
      return new Unavailable('identity_provider', 'refused', { cause: error })
    if (isOperatorsFault(code)) reportRefusedClient(issuer, code)
    return signInRefused(`provider_${code}`, { cause: error })
  }
  if (error instanceof oauth.ResponseBodyError) {
    const code = codeOf(error.error)
    if (code === 'invalid_grant') return signInRefused('code', { cause: error })
    return clientRefused(issuer, code, error)
  }
  if (error instanceof oauth.WWWAuthenticateChallengeError)
    return clientRefused(issuer, 'invalid_client', error)
  if (error instanceof oauth.OperationProcessingError && !NO_RESPONSE.includes(error.code)) {
    const code = error.code?.toLowerCase().replace(/^oauth_/, '')
    return signInRefused(CHECKS.find((check) => check === code) ?? 'error', { cause: error })
  }
  return unavailable(error)
}

const codeOf = (code: string | undefined) =>
  code !== undefined && ERROR_CODE.test(code) ? code : 'error'

/** The provider does not accept the gateway as its client: only its operator can correct that. */
export function clientRefused(issuer: string, error: string, cause: unknown): Unavailable {
  reportRefusedClient(issuer, error)
  return new Unavailable('identity_provider', 'refused', { cause })
}

function reportRefusedClient(issuer: string, error: string): void {
  console.error(JSON.stringify({ incident: 'sign_in_client_refused', issuer, error }))
}
