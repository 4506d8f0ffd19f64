/** The authorization server, made of an environment. */
import { createScopeOfRoles } from '../authorization/permissions.ts'
import type { Config } from '../config.ts'
import {
  type AuthorizationServer,
  createAuthorizationServer,
} from '../oauth/authorization-server.ts'
import type { Policy } from '../policy.ts'
import { createClientLogins } from '../stores/upstash/client-logins.ts'
import { createGrantStore } from '../stores/upstash/grant-store.ts'
import { createReferenceStore } from '../stores/upstash/references.ts'
import { createRefreshFamilies } from '../stores/upstash/refresh-families.ts'
import type { RedisRest } from '../stores/upstash/rest.ts'
import { createRevocations } from '../stores/upstash/revocations.ts'
import type { DpopVerifier } from '../tokens/dpop.ts'
import type { TokenVerifier } from '../tokens/principal.ts'
import { createRefreshTokens } from '../tokens/refresh-tokens.ts'
import { createTokenIssuer, MAX_ACCESS_TOKEN_SECONDS } from '../tokens/token-issuer.ts'

/** Makes the authorization server; what it may issue, and how, is the policy's to say. */
export type MakeAuthorizationServer = (
  policy: Pick<Policy, 'roles' | 'tokens'>,
  proofs: DpopVerifier,
) => AuthorizationServer

export interface AuthorizationServerParts {
  readonly redis: RedisRest
  readonly verifier: TokenVerifier
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Undefined without signing keys: there is none then. */
export function authorizationServerOf(
  { signingKeys, publicUrl: issuer, clients: configured }: Config,
  { redis: rest, verifier, now }: AuthorizationServerParts,
): MakeAuthorizationServer | undefined {
  if (signingKeys === undefined) return undefined
  const { keys } = signingKeys
  const references = createReferenceStore(rest)
  return ({ roles, tokens: { accessTokenSeconds, sessionSeconds, refreshGraceSeconds } }, dpop) =>
    createAuthorizationServer({
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
      dpop,
      scopeOfRoles: createScopeOfRoles(roles),
      sessionSeconds,
      now,
    })
}
