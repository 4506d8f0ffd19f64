/** Callers for the admission tests: principals, reference records and limits. */
import type { LimitRequest, LimitRule } from '../../../src/access/admission/limit.ts'
import type { Principal } from '../../../src/access/principal.ts'
import {
  credentialHash,
  type Reference,
  type ReferenceRecord,
  type ReferenceStore,
} from '../../../src/access/tokens/reference.ts'

export const IDP = 'https://issuer.test'
export const GATEWAY = 'https://gateway.test'
export const ADDRESS = '192.0.2.1'

export const nowSeconds = () => Math.floor(Date.now() / 1000)
let serial = 0

/** Returns a new principal with a token that was issued ten seconds ago. */
export function principal(claims: Partial<Principal> = {}): Principal {
  serial += 1
  return {
    issuer: IDP,
    tokenIssuer: IDP,
    subject: `alice-${serial}`,
    client: 'app',
    tenant: 'acme',
    session: `session-${serial}`,
    roles: [],
    scopes: [],
    tokenId: `token-${serial}`,
    tokenIdHash: `hash-${serial}`,
    confirmation: undefined,
    issuedAtSeconds: nowSeconds() - 10,
    expiresAtSeconds: nowSeconds() + 600,
    ...claims,
  }
}

/** Returns a limit with a unique name. Its window is a day, so that no test reaches its end. */
export function limitOf(rule: Partial<LimitRule> = {}): LimitRequest {
  serial += 1
  return {
    rule: { name: 'test', limit: 3, windowSeconds: 86_400, onUnavailable: 'deny', ...rule },
    key: `key-${serial}`,
  }
}

/** Returns the units used of an exact window, from its text in Redis. */
export const takenOf = (text: string | null): number => Number(text?.slice(0, 10))

/** Returns the record of a token that was exchanged for the identity provider's token. */
export function recordOf(claims: Partial<ReferenceRecord> = {}): ReferenceRecord {
  serial += 1
  return {
    kind: 'opaque',
    tokenId: crypto.randomUUID(),
    tokenIssuer: GATEWAY,
    issuer: IDP,
    subject: `alice-${serial}`,
    client: `app-${serial}`,
    tenant: `acme-${serial}`,
    session: `session-${serial}`,
    roles: ['reader'],
    scopes: ['orders:read'],
    audiences: ['https://elsewhere.test', GATEWAY],
    issuedAtSeconds: nowSeconds() - 10,
    expiresAtSeconds: nowSeconds() + 600,
    ...claims,
  }
}

/** Stores a record and returns its reference. */
export async function stored(store: ReferenceStore, record: ReferenceRecord): Promise<Reference> {
  const text = crypto.randomUUID()
  const reference = { kind: record.kind, text, hash: await credentialHash(text) }
  await store.put(reference.hash, record)
  return reference
}
