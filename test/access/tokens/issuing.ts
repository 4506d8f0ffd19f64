/** The gateway's own keys, and issuers and verifiers that use them, on a test clock. */

import type { AccessGrant } from '../../../src/access/tokens/access-grant.ts'
import type { ReferenceRecord, ReferenceStore } from '../../../src/access/tokens/reference.ts'
import { parseSigningKeys } from '../../../src/access/tokens/signing-keys.ts'
import {
  createTokenIssuer,
  type TokenIssuerOptions,
} from '../../../src/access/tokens/token-issuer.ts'
import { createTokenVerifier } from '../../../src/access/tokens/verifier.ts'
import { parseConfig } from '../../../src/features/environment.ts'
import { createSigner, NOW_MS } from './signer.ts'

export const GATEWAY = 'https://gateway.test'
export const ALGORITHMS = ['ES256', 'RS256', 'EdDSA', 'Ed25519'] as const

const signers = await Promise.all(ALGORITHMS.map((algorithm) => createSigner(algorithm)))
/** The keys in the format of `SIGNING_KEYS`. */
export const signingKeys = JSON.stringify({ keys: signers.map(({ privateJwk }) => privateJwk) })
export const keys = parseSigningKeys(JSON.parse(signingKeys))

export const bare: AccessGrant = {
  subject: 'machine',
  client: 'app',
  roles: [],
  scopes: [],
  audiences: [GATEWAY],
}
export const full: AccessGrant = {
  subject: 'alice',
  subjectIssuer: 'https://idp.test/',
  client: 'app',
  tenant: 'acme',
  session: '0b5ff0a5-7a53-4f0c-8d6e-3f7a2f0f3c51',
  roles: ['reader', 'Domain Admins'],
  scopes: ['orders:read', 'orders:write'],
  audiences: [GATEWAY, 'https://other.test'],
}

/** A store of references in memory; the real store has its own tests. */
export function rememberingStore(): ReferenceStore & { readonly records: Map<string, object> } {
  const records = new Map<string, ReferenceRecord>()
  return {
    records,
    async put(hash, record) {
      records.set(hash, record)
    },
    async find(hash) {
      return records.get(hash)
    },
    async remove(hash) {
      records.delete(hash)
    },
  }
}

export function issuing(options: Partial<TokenIssuerOptions> = {}) {
  const clock = { nowMs: NOW_MS }
  const references = rememberingStore()
  const now = () => clock.nowMs
  const issuer = createTokenIssuer({
    keys,
    issuer: GATEWAY,
    references,
    defaultTtlSeconds: 900,
    now,
    ...options,
  })
  const config = parseConfig({
    UPSTASH_REDIS_REST_URL: 'https://redis.test',
    UPSTASH_REDIS_REST_TOKEN: 'token',
    ORIGIN_URL: 'https://origin.test',
    PUBLIC_URL: GATEWAY,
    SIGNING_KEYS: signingKeys,
  })
  const verifier = createTokenVerifier({ issuers: config.issuers, now })
  return { clock, references, issuer, verifier }
}
