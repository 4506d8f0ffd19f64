/** `refresh_token`: the next access token of a session (RFC 6749 section 6). */
import type { AccessGrant } from '../tokens/access-grant.ts'
import { oauthRefused } from '../tokens/oauth-refusal.ts'
import { principalOfGrant } from './actor.ts'
import { refuseReplay } from './grant-store.ts'
import { grantedScope } from './scope.ts'
import { grantedAudiences } from './target.ts'
import {
  type GrantHandler,
  type GrantOptions,
  issueOptionsOf,
  tokenResponse,
} from './token-request.ts'

/**
 * Makes the handler. The refresh token is used up by the last step but one, after everything that can
 * refuse the request: whoever asks for too much may ask again for less, with the same token.
 */
export function refreshTokenGrant(options: GrantOptions): GrantHandler {
  const { issuer, tokens, refreshTokens, store, scopeOfRoles, now } = options
  return async function grantAgain({ client, form, proof, identify }) {
    const refreshToken = form.one('refresh_token')
    if (refreshToken === undefined) throw oauthRefused('invalid_request', 'refresh_token_missing')
    const session = await refreshTokens.inspect(refreshToken, client.id)
    identify(principalOfGrant(session.grant, issuer))
    const { confirmation } = session.grant
    if (confirmation !== undefined && proof?.thumbprint !== confirmation) {
      throw proof === undefined
        ? oauthRefused('invalid_dpop_proof', 'dpop_missing')
        : oauthRefused('invalid_grant', 'dpop_binding')
    }
    const grant: AccessGrant = {
      ...session.grant,
      // Not the client's bounds: what the session was granted was within them.
      scopes: grantedScope(form.one('scope'), {
        bound: session.grant.scopes,
        held: session.grant.scopes,
        roles: session.grant.roles,
        scopeOfRoles,
      }),
      audiences: grantedAudiences(form, session.grant.audiences, session.grant.audiences),
      confirmation: proof?.thumbprint,
    }
    refuseReplay(await store.consult({ keys: [], proof }))
    const rotation = await refreshTokens.rotate(refreshToken, session)
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
