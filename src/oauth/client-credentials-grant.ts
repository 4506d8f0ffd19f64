/** `client_credentials`: a token for the client itself (RFC 6749 section 4.4). */
import type { AccessGrant } from '../tokens/access-grant.ts'
import { principalOfGrant } from './actor.ts'
import { cutOffKeysOf, issuableAtSeconds, refuseReplay } from './grant-store.ts'
import { grantedScope } from './scope.ts'
import { grantedAudiences } from './target.ts'
import {
  type GrantHandler,
  type GrantOptions,
  issueOptionsOf,
  tokenResponse,
} from './token-request.ts'

/**
 * Makes the handler. `sub` is the client; there is no refresh token (RFC 6749 section 4.4.3). Cut-offs
 * that came with the client are not asked for again: only those of its tenant, and a proof's use.
 */
export function clientCredentialsGrant(options: GrantOptions): GrantHandler {
  const { issuer, tokens, store, scopeOfRoles, now } = options
  return async function grantToClient({ client, cutOffs, form, proof, identify }) {
    const { id, roles, scopes } = client
    const grant: AccessGrant = {
      subject: id,
      client: id,
      tenant: client.tenant,
      roles,
      scopes: grantedScope(form.one('scope'), { bound: scopes, held: scopes, roles, scopeOfRoles }),
      audiences: grantedAudiences(form, client.audiences),
      confirmation: proof?.thumbprint,
    }
    const keys = await cutOffKeysOf(grant, issuer)
    const facts = await store.consult({ keys: keys.filter((key) => !cutOffs.has(key)), proof })
    refuseReplay(facts)
    const issuedAtSeconds = issuableAtSeconds([...cutOffs.values(), ...facts.values], now())
    const issued = await tokens.issue(grant, { ...issueOptionsOf(client), issuedAtSeconds })
    identify(principalOfGrant(grant, issuer, issued))
    return tokenResponse(issued, grant, now())
  }
}
