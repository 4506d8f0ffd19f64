/** `client_credentials`: issues a token for the client itself (RFC 6749 section 4.4). */
import type { AccessGrant } from '../tokens/access-grant.ts'
import { principalOfGrant } from './actor.ts'
import { issuableAtSeconds, refuseReplay, revokedBeforeKeysOf } from './grant-store.ts'
import { grantedScope } from './scope.ts'
import { grantedAudiences } from './target.ts'
import {
  type GrantHandler,
  type GrantOptions,
  issueOptionsOf,
  tokenResponse,
} from './token-request.ts'

/**
 * Creates the handler. `sub` is the client. There is no refresh token (RFC 6749 section 4.4.3). The
 * cutoffs that were read with the client are not read again: only those of its tenant are, and the
 * use of a proof.
 */
export function clientCredentialsGrant(options: GrantOptions): GrantHandler {
  const { issuer, tokens, store, scopeOfRoles, now } = options
  return async function grantToClient({ client, revokedBefore, form, proof, identify }) {
    const { id, roles, scopes } = client
    const grant: AccessGrant = {
      subject: id,
      client: id,
      tenant: client.tenant,
      roles,
      scopes: grantedScope(form.one('scope'), { bound: scopes, held: scopes, roles, scopeOfRoles }),
      audiences: grantedAudiences(form, { issuer, allowed: client.audiences }),
      confirmation: proof?.thumbprint,
    }
    const keys = await revokedBeforeKeysOf(grant, issuer)
    const facts = await store.consult({
      keys: keys.filter((key) => !revokedBefore.has(key)),
      proof,
    })
    refuseReplay(facts)
    const issuedAtSeconds = issuableAtSeconds([...revokedBefore.values(), ...facts.values], now())
    const issued = await tokens.issue(grant, { ...issueOptionsOf(client), issuedAtSeconds })
    identify(principalOfGrant(grant, issuer, issued))
    return tokenResponse(issued, grant, now())
  }
}
