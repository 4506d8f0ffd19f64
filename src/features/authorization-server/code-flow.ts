/** What the authorization code flow offers to the authorization server, which it completes. */
import type { Hono, MiddlewareHandler } from 'hono'
import { createExchange } from '../../isolate/exchange.ts'
import type { GatewayVariables } from '../../middleware/context.ts'
import type { ClientAuthenticator } from './client-authenticator.ts'
import type { Descriptions } from './descriptions.ts'
import type { AuthorizationServerOptions, PublicClients } from './options.ts'
import type { SecurityProfile } from './schemas/client.ts'
import type { GrantHandlers } from './token-endpoint.ts'
import type { OAuthEndpoint } from './token-request.ts'

export interface CodeFlow {
  readonly publicClients: PublicClients
  readonly grants: (options: AuthorizationServerOptions) => GrantHandlers
  /** Members of the metadata. */
  readonly metadata: object
  /** Descriptions of the errors of the flow. */
  readonly descriptions: Descriptions
  readonly endpoints: (
    options: AuthorizationServerOptions,
    authenticate: ClientAuthenticator,
  ) => {
    readonly forms: readonly OAuthEndpoint[]
    readonly apps: readonly Hono<{ Variables: GatewayVariables }>[]
  }
  /** Creates CORS for the endpoints that pages of every origin may call. */
  readonly forPages: (methods: string) => MiddlewareHandler
}

/** The flow under the security profile of the authorization server, which may be composed later. */
export const CODE_FLOW = createExchange<(profile: SecurityProfile | undefined) => CodeFlow>()
