/** Verification by the issuer: `import { introspection } from 'portcullis/introspection'`. */

import { clientKeyChecks } from '../../access/tokens/issuer-client-authentication.ts'
import type { Feature } from '../../gateway/feature.ts'
import { issuerClientsOf, issuerClientVariables } from '../../validators/issuer-client.ts'
import { createIssuerCalls } from './issuer-calls.ts'

/**
 * Returns the verification of tokens by calls to their issuer, for the policy's `features`: by
 * introspection (RFC 7662) or userinfo (OpenID Connect). `introspection` and `userinfo` in `ISSUERS`
 * configure it. Without them, it makes no calls.
 */
export function introspection(): Feature {
  return {
    name: 'introspection',
    // It accepts opaque tokens, and it verifies JWTs of some issuers more strictly.
    presence: 'unknown',
    variables: issuerClientVariables,
    issuerCalls: (config, { watch, now }) =>
      createIssuerCalls({
        issuers: config.issuers,
        clients: issuerClientsOf(config),
        watch,
        now,
      }),
    create({ config, now }) {
      const callsOf = ({ introspection: calls }: (typeof config.issuers)[number]) => calls
      const called = config.issuers.filter(callsOf).map(({ issuer }) => issuer)
      const clients = issuerClientsOf(config).filter(({ issuer }) => called.includes(issuer))
      return { checks: clientKeyChecks(clients, now, 'introspection') }
    },
  }
}
