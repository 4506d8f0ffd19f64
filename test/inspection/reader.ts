/** A caller for the tests of the inspection. */
import type { Principal } from '../../src/access/principal.ts'

/** Returns a principal with one role, as `authenticate` would set it. */
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
