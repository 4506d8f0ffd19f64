/** The request that sends a browser to the provider: in its query, or pushed before (RFC 9126). */
import * as oauth from 'oauth4webapi'
import { isAcceptable } from '../../access/tokens/discovery.ts'
import { Unavailable } from '../../errors.ts'
import { classifyFailure } from './provider-call.ts'
import type { SignInSettings } from './schema.ts'

export interface AuthorizationUrlOptions {
  readonly as: oauth.AuthorizationServer
  readonly client: oauth.Client
  readonly authentication: oauth.ClientAuth
  /** Undefined members are left out. */
  readonly parameters: Readonly<Record<string, string | undefined>>
  readonly settings: Pick<SignInSettings, 'parameters' | 'pushedRequests'>
  readonly callOptions: () => oauth.PushedAuthorizationRequestOptions
}

/**
 * Returns where the browser goes. A pushed request goes to the provider directly, so that the browser can
 * neither read nor change it. Throws `Unavailable` if the provider does not accept it.
 */
export async function authorizationUrl({
  as,
  client,
  authentication,
  parameters,
  settings,
  callOptions,
}: AuthorizationUrlOptions): Promise<URL> {
  const url = new URL(as.authorization_endpoint ?? '')
  const all = new URLSearchParams()
  // Those of the sign-in come last, so that they replace the others.
  for (const [name, value] of [settings.parameters ?? {}, parameters].flatMap(Object.entries))
    if (value !== undefined) all.set(name, value)
  const isPushed = settings.pushedRequests ?? as.require_pushed_authorization_requests === true
  const query = isPushed ? await push(as, all) : all
  for (const [name, value] of query) url.searchParams.set(name, value)
  return url

  async function push(server: oauth.AuthorizationServer, form: URLSearchParams) {
    const endpoint = server.pushed_authorization_request_endpoint
    if (endpoint === undefined || !isAcceptable(endpoint, server.issuer))
      throw new Unavailable('identity_provider', 'malformed')
    try {
      const response = await oauth.pushedAuthorizationRequest(
        server,
        client,
        authentication,
        form,
        callOptions(),
      )
      const { request_uri } = await oauth.processPushedAuthorizationResponse(
        server,
        client,
        response,
      )
      return new URLSearchParams({ client_id: client.client_id, request_uri })
    } catch (error) {
      const failure = classifyFailure(error, server.issuer)
      // No user has done anything yet: whatever the provider refuses is a fault of the configuration.
      if (failure instanceof Unavailable) throw failure
      throw new Unavailable('identity_provider', 'refused', { cause: error })
    }
  }
}
