/** Creates the authorization server: its three endpoints over the ports. */

import type { TokenVerifier } from '../identity/principal.ts'
import type { RefreshTokens, TokenIssuer } from '../tokens/access-grant.ts'
import type { DpopVerifier } from '../tokens/dpop.ts'
import type { ReferenceStore } from '../tokens/reference.ts'
import type { SigningJwk } from '../validators/signing-jwk.ts'
import { createClientAssertionVerifier } from './client-assertion.ts'
import { createClientAuthenticator } from './client-authenticator.ts'
import type { ClientLogins } from './client-logins.ts'
import type { ExchangeLimits } from './exchange-limits.ts'
import type { GrantStore } from './grant-store.ts'
import { createIntrospectionEndpoint, type IntrospectionEndpoint } from './introspection.ts'
import { TOKEN_PATH } from './metadata.ts'
import { createOwnTokenReader } from './own-token.ts'
import { createPresentedTokenReader } from './presented-token.ts'
import {
  createRevocationEndpoint,
  type RevocationEndpoint,
  type TokenRevoker,
} from './revocation.ts'
import type { ScopeOfRoles } from './scope.ts'
import { createSubjectTokenReader } from './subject-token.ts'
import { createTokenEndpoint, type TokenEndpoint } from './token-endpoint.ts'

export interface AuthorizationServerOptions {
  /** The gateway's public URL. */
  readonly issuer: string
  /** Private keys that sign tokens. */
  readonly keys: readonly SigningJwk[]
  readonly logins: ClientLogins
  readonly store: GrantStore
  readonly tokens: TokenIssuer
  readonly refreshTokens: RefreshTokens
  readonly references: ReferenceStore
  readonly revoker: TokenRevoker
  /** The gateway's own verifier, which accepts tokens for the gateway. */
  readonly verifier: TokenVerifier
  readonly dpop: DpopVerifier
  /** Issuers that share their tenants with the gateway. */
  readonly tenantIssuers: ReadonlySet<string>
  /** Returns the scopes that roles grant under the policy. */
  readonly scopeOfRoles: ScopeOfRoles
  /**
   * Life of a session that starts with a login at another issuer, in seconds. Undefined: the
   * session ends with the login's token.
   */
  readonly sessionSeconds: number | undefined
  readonly exchangeLimits: ExchangeLimits
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

export interface AuthorizationServer {
  readonly token: TokenEndpoint
  readonly revoke: RevocationEndpoint
  readonly introspect: IntrospectionEndpoint
}

/** Creates the endpoints. No I/O. Only keys are kept between requests. */
export function createAuthorizationServer(
  options: AuthorizationServerOptions,
): AuthorizationServer {
  const { issuer, logins, now } = options
  const audiences = [issuer, issuer + TOKEN_PATH]
  const verifyAssertion = createClientAssertionVerifier({ audiences, now })
  const authenticate = createClientAuthenticator({ logins, verifyAssertion, now })
  const readSubject = createSubjectTokenReader(options)
  const ownTokens = createOwnTokenReader(options)
  const readPresented = createPresentedTokenReader({ ...options, ownTokens })
  const parts = { ...options, authenticate, readPresented, readSubject }
  return {
    token: createTokenEndpoint(parts),
    revoke: createRevocationEndpoint(parts),
    introspect: createIntrospectionEndpoint(parts),
  }
}
