/** Creates the authorization server: its three endpoints over the ports. */
import { createClientAuthenticator } from './client-authenticator.ts'
import { createIntrospectionEndpoint } from './introspection.ts'
import type { AuthorizationServerOptions } from './options.ts'
import { createPresentedTokenReader } from './presented-token.ts'
import { createRevocationEndpoint } from './revocation.ts'
import { createTokenEndpoint } from './token-endpoint.ts'

export type AuthorizationServer = ReturnType<typeof createAuthorizationServer>

/** Creates the endpoints. No I/O. Only keys are kept between requests. */
export function createAuthorizationServer(options: AuthorizationServerOptions) {
  const authenticate = createClientAuthenticator(options)
  const parts = { ...options, authenticate, readPresented: createPresentedTokenReader(options) }
  return {
    token: createTokenEndpoint(parts),
    revoke: createRevocationEndpoint(parts),
    introspect: createIntrospectionEndpoint(parts),
  }
}
