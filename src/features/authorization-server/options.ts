/** The dependencies of the authorization server. Each part of it declares those that it uses. */
import type { PolicyAuthorizer } from '../../access/permissions.ts'
import type { TokenVerifier } from '../../access/principal.ts'
import type { Revocations } from '../../access/revocation/revocation.ts'
import type { TokenIssuer } from '../../access/tokens/access-grant.ts'
import type { DpopVerifier } from '../../access/tokens/dpop.ts'
import type { ReferenceStore } from '../../access/tokens/reference.ts'
import type { RefreshTokens } from '../../access/tokens/refresh-tokens.ts'
import type { SigningJwk } from '../../access/tokens/signing-keys.ts'
import type { ExchangeLimits } from '../../policy/tokens.ts'
import type { Client } from './client.ts'
import type { ClientLogins } from './client-logins.ts'
import type { GrantRules } from './decide-grant.ts'
import type { GrantStore } from './grant-store.ts'
import type { SecurityProfile } from './schemas/client.ts'

/** Port: public clients that are not in the registry. Throws `Unavailable` if the store fails. */
export interface PublicClients {
  /** Returns a client from its id, without a call to the client. */
  find(id: string): Promise<Client | undefined>
}

export interface AuthorizationServerOptions extends GrantRules {
  /** Private keys that sign tokens. */
  readonly keys: readonly SigningJwk[]
  readonly logins: ClientLogins
  /** Public clients. Undefined: a client without a credential is refused. */
  readonly publicClients?: PublicClients | undefined
  readonly store: GrantStore
  readonly tokens: TokenIssuer
  readonly refreshTokens: RefreshTokens
  /** The records of opaque tokens and API keys. */
  readonly references: ReferenceStore
  readonly revoker: Pick<Revocations, 'revokeToken'>
  /** The gateway's own verifier. */
  readonly verifier: TokenVerifier
  readonly dpop: DpopVerifier
  readonly scopesHeldBy: PolicyAuthorizer['scopesHeldBy']
  /** Issuers that share their tenants with the gateway. */
  readonly tenantIssuers: ReadonlySet<string>
  /** Life of a session after a login elsewhere. Undefined: it ends with the login's token. */
  readonly sessionSeconds: number | undefined
  readonly exchangeLimits: ExchangeLimits
  /** The security profile of all clients that act for users. */
  readonly profile: SecurityProfile | undefined
  /** Milliseconds since the epoch. */
  readonly now: () => number
}
