/** Creates the authorization server: its three endpoints over the ports. */
import { createClientAuthenticator } from './client-authenticator.ts'
import { createIntrospectionEndpoint } from './introspection.ts'
import type { AuthorizationServerOptions } from './options.ts'
import { createPresentedTokenReader } from './presented-token.ts'
import { createRevocationEndpoint } from './revocation.ts'
import { createTokenEndpoint, type GrantHandlers } from './token-endpoint.ts'

export type AuthorizationServer = ReturnType<typeof createAuthorizationServer>

/** Creates the endpoints. No I/O. Only keys are kept between requests. `grants`: of other features. */
export function createAuthorizationServer(
  options: AuthorizationServerOptions,
  grants: GrantHandlers = {},
) {
  const authenticate = createClientAuthenticator(options)
  const parts = {
    ...options,
    grants,
    authenticate,
    readPresented: createPresentedTokenReader(options),
  }
  return {
    authenticate,
    token: createTokenEndpoint(parts),
    revoke: createRevocationEndpoint(parts),
    introspect: createIntrospectionEndpoint(parts),
  }
}
