/** The metadata of the authorization server (RFC 8414 section 2). */
import { DPOP_ALGORITHMS } from '../../crypto/dpop-algorithms.ts'
import { GRANT_TYPES } from './client.ts'
import { ASSERTION_ALGORITHMS, FAPI_ALGORITHMS, type SecurityProfile } from './schemas/client.ts'

export const TOKEN_PATH = '/oauth/token'
export const REVOCATION_PATH = '/oauth/revoke'
export const INTROSPECTION_PATH = '/oauth/introspect'
/** Of the authorization code flow. */
export const AUTHORIZE_PATH = '/oauth/authorize'
export const PUSHED_REQUEST_PATH = '/oauth/par'
export const REGISTRATION_PATH = '/oauth/register'

const CLIENT_METHODS = ['client_secret_basic', 'client_secret_post', 'private_key_jwt'] as const

/** Grants that need no other feature. */
const OWN_GRANTS = GRANT_TYPES.slice(0, 3)

/** Returns the members of a server with the profile FAPI 2.0, which replace others. */
export function profileMetadata(profile: SecurityProfile | undefined, hasCodeFlow: boolean) {
  if (profile !== 'fapi2') return {}
  return {
    ...assertionAlgorithms(FAPI_ALGORITHMS),
    ...(hasCodeFlow && { require_pushed_authorization_requests: true }),
  }
}

const assertionAlgorithms = (algorithms: readonly string[]) => ({
  token_endpoint_auth_signing_alg_values_supported: algorithms,
  revocation_endpoint_auth_signing_alg_values_supported: algorithms,
  introspection_endpoint_auth_signing_alg_values_supported: algorithms,
})

/**
 * Returns the metadata document without an authorization endpoint: users log in at their identity
 * provider, and clients exchange its tokens here. So no response types are supported, and
 * `response_types_supported` is left out: claims with zero elements must be omitted (RFC 8414
 * section 3.2). `codeFlowMetadata` adds the endpoint.
 */
export function authorizationServerMetadata(issuer: string) {
  return {
    issuer,
    token_endpoint: issuer + TOKEN_PATH,
    revocation_endpoint: issuer + REVOCATION_PATH,
    introspection_endpoint: issuer + INTROSPECTION_PATH,
    jwks_uri: `${issuer}/.well-known/jwks.json`,
    grant_types_supported: OWN_GRANTS,
    token_endpoint_auth_methods_supported: CLIENT_METHODS,
    revocation_endpoint_auth_methods_supported: CLIENT_METHODS,
    introspection_endpoint_auth_methods_supported: CLIENT_METHODS,
    ...assertionAlgorithms(ASSERTION_ALGORITHMS),
    dpop_signing_alg_values_supported: DPOP_ALGORITHMS,
  }
}
