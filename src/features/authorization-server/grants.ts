/** Grants that need no other token: client credentials and refresh tokens. */
import {
  type AccessGrant,
  deriveCutoffKeys,
  principalOfGrant,
} from '../../access/tokens/access-grant.ts'
import { oauthRefused } from '../../access/tokens/rejection.ts'
import { followsFapi, mayActFor } from './client.ts'
import { decideGrant } from './decide-grant.ts'
import { isCutOff, issuableAtSeconds, refuseReplay } from './grant-store.ts'
import type { AuthorizationServerOptions } from './options.ts'
import { type GrantHandler, issueOptionsOf, refuseUnbound, tokenResponse } from './token-request.ts'

/**
 * Creates the handler of `client_credentials` (RFC 6749 section 4.4). `sub` is the client. There is
 * no refresh token (section 4.4.3). The cutoffs that were read with the client are not read again:
 * only those of its tenant are, and the use of a proof.
 */
export function clientCredentialsGrant(options: AuthorizationServerOptions): GrantHandler {
  const { issuer, tokens, store, now } = options
  return async function grantClientCredentials({ client, revokedBefore, form, proof, identify }) {
    const { id, roles, scopes } = client
    const basis = { audiences: undefined, scopes, roles }
    const grant: AccessGrant = {
      subject: id,
      client: id,
      tenant: client.tenant,
      roles,
      ...decideGrant(options, basis, client, { form, scope: form.one('scope') }),
      confirmation: proof?.thumbprint,
    }
    const keys = await deriveCutoffKeys(store.keys, grant, issuer)
    const unread = keys.filter((key) => !revokedBefore.has(key))
    const facts = await store.consult({ keys: unread, proof })
    refuseReplay(facts)
    const issuedAtSeconds = issuableAtSeconds([...revokedBefore.values(), ...facts.values], now())
    const issued = await tokens.issue(grant, { ...issueOptionsOf(client), issuedAtSeconds })
    identify(principalOfGrant(grant, issuer, issued))
    return tokenResponse(issued, grant, now())
  }
}

/**
 * Creates the handler of `refresh_token` (RFC 6749 section 6). The refresh token is used only after
 * every check of the request has passed. A client that requests too much may therefore repeat the
 * request with the same token.
 */
export function refreshTokenGrant(options: AuthorizationServerOptions): GrantHandler {
  const { issuer, tokens, refreshTokens, store, tenantIssuers, profile, now } = options
  return async function grantRefresh({ client, form, proof, identify }) {
    const refreshToken = form.one('refresh_token')
    if (refreshToken === undefined) throw oauthRefused('invalid_request', 'refresh_token_missing')
    const session = await refreshTokens.inspect(refreshToken, client.id)
    const bearer = principalOfGrant(session.grant, issuer)
    identify(bearer)
    // The policy may have changed since the session started.
    if (!mayActFor(client, bearer, tenantIssuers))
      throw oauthRefused('invalid_grant', 'session_tenant')
    // The credential of a confidential client binds its refresh tokens (RFC 9449 section 5). But the
    // session does not become one of bearer tokens.
    if (client.public) refuseUnbound(bearer, proof, 'invalid_grant', 'dpop_binding')
    else if (bearer.confirmation !== undefined && proof === undefined)
      throw oauthRefused('invalid_dpop_proof', 'dpop_missing')
    const grant: AccessGrant = {
      ...session.grant,
      // The client's bounds are not applied again: the session's scopes were within them.
      ...decideGrant(options, session.grant, undefined, { form, scope: form.one('scope') }),
      confirmation: proof?.thumbprint,
    }
    if (await isCutOff(store, issuer, session, proof))
      throw oauthRefused('invalid_grant', 'refresh_token_cut_off')
    // FAPI 2.0, section 5.3.2.1: no rotation. The key of the client protects its refresh tokens.
    const keepsToken = followsFapi(client, profile)
    const rotation = await refreshTokens.rotate(refreshToken, session, { keepsToken })
    const issued = await tokens.issue(grant, {
      ...issueOptionsOf(client),
      seed: rotation.seed,
      issuedAtSeconds: rotation.issuedAtSeconds,
      notAfterSeconds: session.expiresAtSeconds,
    })
    identify(principalOfGrant(grant, issuer, issued))
    return { ...tokenResponse(issued, grant, now()), refresh_token: rotation.refreshToken }
  }
}
