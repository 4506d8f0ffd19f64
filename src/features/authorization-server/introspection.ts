/** Token introspection for clients and resource servers (RFC 7662). */
import type { Principal } from '../../access/principal.ts'
import { principalOfGrant } from '../../access/tokens/access-grant.ts'
import { loginClaims } from '../../access/tokens/login.ts'
import { statedAudiences } from '../../access/tokens/narrowed.ts'
import type { Session } from '../../access/tokens/refresh-family.ts'
import { oauthRefused } from '../../access/tokens/rejection.ts'
import { type Client, principalOfClient } from './client.ts'
import type { ClientAuthenticator } from './client-authenticator.ts'
import { revocationLookup } from './grant-store.ts'
import type { AuthorizationServerOptions } from './options.ts'
import type { Presented, PresentedAccess, PresentedTokenReader } from './presented-token.ts'
import type { OAuthRequest } from './token-request.ts'

/**
 * The response of RFC 7662 section 2.2, before it is written as JSON, which omits undefined members.
 * Times are seconds since the epoch.
 */
export type Introspection =
  | { readonly active: false }
  | {
      readonly active: true
      readonly scope: string | undefined
      readonly client_id: string | undefined
      readonly token_type?: 'Bearer' | 'DPoP' | undefined
      readonly exp: number | undefined
      readonly iat: number
      readonly sub: string
      readonly aud?: string | readonly string[] | undefined
      readonly iss: string
      readonly jti?: string | undefined
      readonly sid: string | undefined
      /** The issuer that vouches for `sub`, if it is not `iss`. */
      readonly sub_iss: string | undefined
      readonly roles?: readonly string[] | undefined
      readonly tenant?: string | undefined
      readonly cnf?: { readonly jkt: string } | undefined
    }

export interface IntrospectionOptions extends Pick<AuthorizationServerOptions, 'issuer' | 'store'> {
  readonly authenticate: ClientAuthenticator
  readonly readPresented: PresentedTokenReader
}

const INACTIVE: Introspection = { active: false }

/**
 * Creates the endpoint. A client may introspect tokens that were issued to it, and access tokens
 * for one of its audiences, as a resource server does. It may introspect a refresh token only if
 * that was issued to it. Every other token is reported as inactive, without a reason. Bans are not
 * checked, because they apply to callers, not to tokens.
 */
export function createIntrospectionEndpoint(options: IntrospectionOptions) {
  const { store, issuer } = options
  return async function introspect(request: OAuthRequest): Promise<Introspection> {
    const { client } = await options.authenticate(request)
    request.identify(principalOfClient(client, issuer))
    // Anyone may be a public client: it would report whether a stolen token is valid.
    if (client.public) throw oauthRefused('unauthorized_client', 'client_public')
    const token = request.form.one('token')
    if (token === undefined) throw oauthRefused('invalid_request', 'missing_token')
    const presented = await options.readPresented(token, request.waitUntil)
    if (presented === undefined) return INACTIVE
    if (!mayIntrospect(presented, client, issuer)) return INACTIVE
    const bearer = bearerOf(presented, issuer)
    const { keys, revokedBy } = await revocationLookup(store.keys, bearer)
    const { values } = await store.consult({ keys, subject: bearer.subject })
    if (revokedBy(values) !== undefined) return INACTIVE
    return presented.kind === 'refresh'
      ? sessionState(presented.session, issuer)
      : tokenState(presented, issuer)
  }
}

/** Returns the principal that cutoffs are checked for. One at the start of a session ends it. */
function bearerOf(presented: Presented, issuer: string): Principal {
  if (presented.kind !== 'refresh') return presented.principal
  const { grant, startedAtSeconds } = presented.session
  return { ...principalOfGrant(grant, issuer), issuedAtSeconds: startedAtSeconds }
}

/** A token of another issuer has the gateway as its audience: it was verified for it. */
function mayIntrospect(presented: Presented, client: Client, issuer: string): boolean {
  if (presented.kind === 'refresh')
    return presented.live && presented.session.grant.client === client.id
  const { principal, audiences } = presented
  if (principal.tokenIssuer === issuer && principal.client === client.id) return true
  return (audiences ?? [issuer]).some((audience) => client.audiences.includes(audience))
}

function tokenState(
  { kind, principal, audiences: all }: PresentedAccess,
  issuer: string,
): Introspection {
  const audiences = all && statedAudiences(all, issuer)
  const { confirmation, scopes, roles, expiresAtSeconds } = principal
  return {
    active: true,
    scope: scopes.length > 0 ? scopes.join(' ') : undefined,
    client_id: principal.client,
    token_type: kind === 'api_key' ? undefined : confirmation === undefined ? 'Bearer' : 'DPoP',
    exp: Number.isFinite(expiresAtSeconds) ? expiresAtSeconds : undefined,
    iat: principal.issuedAtSeconds,
    sub: principal.subject,
    aud: audiences?.length === 1 ? audiences[0] : audiences,
    iss: principal.tokenIssuer,
    jti: principal.tokenId,
    sid: principal.session,
    sub_iss: principal.issuer === principal.tokenIssuer ? undefined : principal.issuer,
    roles: roles.length > 0 ? roles : undefined,
    tenant: principal.tenant,
    ...loginClaims(principal.login),
    cnf: confirmation === undefined ? undefined : { jkt: confirmation },
  }
}

function sessionState(
  { id, grant, startedAtSeconds, expiresAtSeconds }: Session,
  issuer: string,
): Introspection {
  return {
    active: true,
    scope: grant.scopes.length > 0 ? grant.scopes.join(' ') : undefined,
    client_id: grant.client,
    exp: Math.floor(expiresAtSeconds),
    iat: startedAtSeconds,
    sub: grant.subject,
    iss: issuer,
    sid: id,
    sub_iss: grant.subjectIssuer,
  }
}
