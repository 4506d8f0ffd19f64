/** Verification by the issuer: `import { introspection } from 'portcullis/introspection'`. */
import type { GatewayFeature } from '../gateway/features.ts'
import { createIssuerCalls } from '../introspection/issuer-calls.ts'

/**
 * Returns the verification of tokens by calls to their issuer, for the policy's `features`: by
 * introspection (RFC 7662) or userinfo (OpenID Connect). `introspection` and `userinfo` in `ISSUERS`
 * configure it. Without them, it makes no calls.
 */
export function introspection(): GatewayFeature {
  return {
    feature: 'introspection',
    services: () => ({}),
    issuerCalls: ({ issuers, issuerClients: clients }, { watch, now }) =>
      createIssuerCalls({ issuers, clients, watch, now }),
  }
}
