/** Creates the authorization server: its three endpoints over the ports. */
import { createClientAssertionVerifier } from './client-assertion.ts'
import { createClientAuthenticator } from './client-authenticator.ts'
import type { ClientLogins } from './client-logins.ts'
import { createIntrospectionEndpoint, type IntrospectionEndpoint } from './introspection.ts'
import { TOKEN_PATH } from './metadata.ts'
import { createOwnTokenReader, createPresentedTokenReader } from './presented-token.ts'
import {
  createRevocationEndpoint,
  type RevocationEndpoint,
  type RevocationOptions,
} from './revocation.ts'
import { createSubjectTokenReader, type SubjectTokenOptions } from './subject-token.ts'
import {
  createTokenEndpoint,
  type TokenEndpoint,
  type TokenEndpointOptions,
} from './token-endpoint.ts'

export interface AuthorizationServerOptions
  extends Omit<TokenEndpointOptions, 'authenticate' | 'readSubject'>,
    Omit<RevocationOptions, 'authenticate' | 'readPresented'>,
    SubjectTokenOptions {
  readonly logins: ClientLogins
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
