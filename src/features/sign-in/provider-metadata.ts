/** The metadata of an OpenID Provider. */
import * as oauth from 'oauth4webapi'
import { isAcceptable } from '../../access/tokens/discovery.ts'
import { Unavailable } from '../../errors.ts'
import { createSharedReading } from '../../isolate/shared-reading.ts'
import { unavailable } from './provider-call.ts'

export interface ProviderMetadataOptions {
  readonly issuer: string
  readonly callOptions: () => oauth.DiscoveryRequestOptions
  /** Of one call to the provider. */
  readonly timeoutMs: number
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** A login begins only at a provider that responded in this time, and fails fast otherwise. */
const METADATA_MS = 5_000

export function createProviderMetadata({
  issuer,
  callOptions,
  timeoutMs,
  now,
}: ProviderMetadataOptions) {
  const issuerUrl = new URL(issuer)
  let known: oauth.AuthorizationServer | undefined

  async function discover(): Promise<oauth.AuthorizationServer> {
    try {
      const response = await oauth.discoveryRequest(issuerUrl, callOptions())
      const found = await oauth.processDiscoveryResponse(issuerUrl, response)
      for (const url of [found.authorization_endpoint, found.token_endpoint])
        if (url === undefined || !isAcceptable(url, issuer))
          throw new Unavailable('identity_provider', 'malformed')
      // The library also accepts another spelling of the URL, and tokens would have that one.
      if (found.issuer !== issuer) throw new Unavailable('identity_provider', 'malformed')
      known = found
      return found
    } catch (error) {
      throw unavailable(error)
    }
  }
  const current = createSharedReading<void, oauth.AuthorizationServer>({
    read: discover,
    now,
    memoryMs: METADATA_MS,
    // A longer reading counts as dead.
    leaseMs: timeoutMs + 1_000,
  })
  return {
    /** Returns metadata that the provider sent in the last seconds. Throws `Unavailable`. */
    current,
    /** Returns the last metadata: a failure to read it again does not end a login or a refresh. */
    last: async (): Promise<oauth.AuthorizationServer> => known ?? (await current()),
  }
}
