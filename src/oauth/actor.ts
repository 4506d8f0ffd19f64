/** Converts clients and grants to principals, for audit events and revocation checks. */

import type { Principal } from '../identity/principal.ts'
import type { AccessGrant, IssuedToken } from '../tokens/access-grant.ts'
import type { Client } from './client.ts'

/**
 * Returns the principal of a granted token, as `authenticate` will create it. Audit events name it
 * too.
 */
export function principalOfGrant(
  grant: AccessGrant,
  tokenIssuer: string,
  issued?: IssuedToken,
): Principal {
  return {
    issuer: grant.subjectIssuer ?? tokenIssuer,
    tokenIssuer,
    subject: grant.subject,
    client: grant.client,
    tenant: grant.tenant,
    session: grant.session,
    roles: grant.roles,
    scopes: grant.scopes,
    tokenId: issued?.tokenId,
    tokenIdHash: issued?.tokenIdHash,
    confirmation: grant.confirmation,
    issuedAtSeconds: issued?.issuedAtSeconds ?? 0,
    expiresAtSeconds: issued?.expiresAtSeconds ?? 0,
  }
}

/** Returns the principal of a client for the audit trail, before any token exists. */
export function principalOfClient({ id, tenant, roles }: Client, issuer: string): Principal {
  return principalOfGrant(
    { subject: id, client: id, tenant, roles, scopes: [], audiences: [] },
    issuer,
  )
}
