/** The authorization server: its three endpoints, put together out of ports. */
import type { RefreshTokens, TokenIssuer } from '../tokens/access-grant.ts'
import type { DpopVerifier } from '../tokens/dpop.ts'
import type { TokenVerifier } from '../tokens/principal.ts'
import type { ReferenceStore } from '../tokens/reference.ts'
import type { SigningJwk } from '../validators/signing-jwk.ts'
import { createClientAssertionVerifier } from './client-assertion.ts'
import { createClientAuthenticator } from './client-authenticator.ts'
import type { ClientLogins } from './client-logins.ts'
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
  /** Private keys that tokens are signed with. */
  readonly keys: readonly SigningJwk[]
  readonly logins: ClientLogins
  readonly store: GrantStore
  readonly tokens: TokenIssuer
  readonly refreshTokens: RefreshTokens
  readonly references: ReferenceStore
  readonly revoker: TokenRevoker
  /** The gateway's own: of the tokens that are good at it. */
  readonly verifier: TokenVerifier
  readonly dpop: DpopVerifier
  /** What roles grant under the policy. */
  readonly scopeOfRoles: ScopeOfRoles
  /** Life of a session, seconds. */
  readonly sessionSeconds: number
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

export interface AuthorizationServer {
  readonly token: TokenEndpoint
  readonly revoke: RevocationEndpoint
  readonly introspect: IntrospectionEndpoint
}

/** Puts the endpoints together. Without I/O; nothing of it is kept between requests but keys. */
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
