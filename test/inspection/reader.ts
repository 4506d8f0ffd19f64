/** A caller of the inspection's tests. */
import type { Principal } from '../../src/identity/principal.ts'

/** Somebody with one role, as `authenticate` would have found out. */
export function readerOf(role: string): Principal {
  return {
    issuer: 'https://issuer.test',
    tokenIssuer: 'https://issuer.test',
    subject: 'alice',
    client: undefined,
    tenant: undefined,
    session: undefined,
    roles: [role],
    scopes: [],
    tokenId: undefined,
    tokenIdHash: undefined,
    confirmation: undefined,
    issuedAtSeconds: 0,
    expiresAtSeconds: 1,
  }
}
