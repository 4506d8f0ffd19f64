/** The npm package `oidc-provider`, which has no types. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
// @ts-expect-error: the package has no types.
import { Provider as UntypedProvider } from 'oidc-provider'

/** The part of the package that tests use. */
export interface Provider {
  callback(): RequestListener
  interactionFinished(
    request: IncomingMessage,
    response: ServerResponse,
    result: object,
  ): Promise<void>
}

export const ProviderOf = UntypedProvider as new (issuer: string, configuration: object) => Provider

/** Returns the listener of a provider at which `alice` logs in and consents at once, at a path. */
export function withInstantLogin(provider: Provider, loginPath: string): RequestListener {
  const callback = provider.callback()
  return (request, response) =>
    request.url?.startsWith(loginPath)
      ? provider.interactionFinished(request, response, {
          login: { accountId: 'alice' },
          consent: {},
        })
      : callback(request, response)
}
