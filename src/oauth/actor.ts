/** Whom the audit trail names for a request to the authorization server. */
import type { AccessGrant, IssuedToken } from '../tokens/access-grant.ts'
import type { Principal } from '../tokens/principal.ts'
import type { Client } from './client.ts'

/** The bearer of a granted token, as `authenticate` will see it; also who an audit event names. */
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

/** A client as an actor of the audit trail, before it has any token. */
export function principalOfClient({ id, tenant, roles }: Client, issuer: string): Principal {
  return {
    issuer,
    tokenIssuer: issuer,
    subject: id,
    client: id,
    tenant,
    session: undefined,
    roles,
    scopes: [],
    tokenId: undefined,
    tokenIdHash: undefined,
    confirmation: undefined,
    issuedAtSeconds: 0,
    expiresAtSeconds: 0,
  }
}
