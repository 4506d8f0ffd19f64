/** Composes the authorization server. */
import { createScopeOfRoles } from '../authorization/permissions.ts'
import type { TokenVerifier } from '../identity/principal.ts'
import {
  type AuthorizationServer,
  createAuthorizationServer,
} from '../oauth/authorization-server.ts'
import { createClientLogins } from '../oauth/redis/client-logins.ts'
import { createGrantStore } from '../oauth/redis/grant-store.ts'
import type { Policy } from '../policy/policy.ts'
import type { RedisRest } from '../redis/rest.ts'
import { createRevocations } from '../revocation/redis/revocations.ts'
import type { DpopVerifier } from '../tokens/dpop.ts'
import { createReferenceStore } from '../tokens/redis/references.ts'
import { createRefreshFamilies } from '../tokens/redis/refresh-families.ts'
import { createRefreshTokens } from '../tokens/refresh-tokens.ts'
import { createTokenIssuer, MAX_ACCESS_TOKEN_SECONDS } from '../tokens/token-issuer.ts'
import type { Config } from '../validators/environment.ts'
import { tenantIssuersOf } from './tenant-issuers.ts'

export interface AuthorizationServerParts {
  readonly redis: RedisRest
  readonly verifier: TokenVerifier
  readonly proofs: DpopVerifier
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Creates the authorization server. Returns undefined without signing keys. */
export function authorizationServerOf(
  config: Config,
  policy: Pick<Policy, 'roles' | 'tokens' | 'tenantIssuers'>,
  { redis: rest, verifier, proofs, now }: AuthorizationServerParts,
): AuthorizationServer | undefined {
  const { signingKeys, publicUrl: issuer, clients: configured } = config
  if (signingKeys === undefined) return undefined
  const { keys } = signingKeys
  const references = createReferenceStore(rest)
  const { roles, tokens } = policy
  const { accessTokenSeconds, sessionSeconds, refreshGraceSeconds, exchangeLimits } = tokens
  return createAuthorizationServer({
    issuer,
    keys,
    logins: createClientLogins({ rest, configured, publicUrl: issuer }),
    store: createGrantStore(rest),
    tokens: createTokenIssuer({
      keys,
      issuer,
      references,
      defaultTtlSeconds: accessTokenSeconds,
      now,
    }),
    refreshTokens: createRefreshTokens({
      store: createRefreshFamilies(rest),
      issuer,
      graceSeconds: refreshGraceSeconds,
      maxAccessTokenSeconds: MAX_ACCESS_TOKEN_SECONDS,
      now,
    }),
    references,
    revoker: createRevocations(rest, now),
    verifier,
    dpop: proofs,
    scopeOfRoles: createScopeOfRoles(roles),
    tenantIssuers: tenantIssuersOf(policy, config),
    sessionSeconds,
    exchangeLimits,
    now,
  })
}
