/** Many callers, each with a credential of its own. */
import { calculateJwkThumbprint, exportJWK, generateKeyPair } from 'jose'
import { createRedisRest } from '../../src/redis/rest.ts'
import type { TokenFormat } from '../../src/tokens/access-grant.ts'
import { createReferenceStore } from '../../src/tokens/redis/references.ts'
import { parseSigningKeys } from '../../src/tokens/signing-keys.ts'
import { createTokenIssuer } from '../../src/tokens/token-issuer.ts'
import type { Backends } from '../backends.ts'
import { PUBLIC_URL } from '../tokens.ts'

const TTL_SECONDS = 3_600
/** Nobody waits for these as a caller would. */
const STORE_TIMEOUT_MS = 10_000
/** Opaque ones are stored, one call each. */
const ISSUED_AT_ONCE = 16

export interface Credentials {
  /** Private JWK Set of the gateway, JSON. */
  readonly signingKeys: string
  /** So many of new callers, as the gateway would issue them. */
  issue(format: TokenFormat, count: number): Promise<readonly string[]>
}

/** Makes a key, and issues with it; what is opaque is put into Redis. */
export async function createCredentials({ redis }: Pick<Backends, 'redis'>): Promise<Credentials> {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  const jwk = await exportJWK(privateKey)
  const key = { ...jwk, kid: await calculateJwkThumbprint(jwk), alg: 'ES256', use: 'sig' }
  const keys = parseSigningKeys({ keys: [key] })
  const issuer = createTokenIssuer({
    ...{ keys, issuer: PUBLIC_URL, defaultTtlSeconds: TTL_SECONDS },
    references: createReferenceStore(createRedisRest({ ...redis, timeoutMs: STORE_TIMEOUT_MS })),
  })
  let callers = 0
  async function issueOne(format: TokenFormat): Promise<string> {
    const subject = `caller-${callers++}`
    const grant = { subject, client: 'bench', roles: ['reader'], scopes: [] }
    return (await issuer.issue({ ...grant, audiences: [PUBLIC_URL] }, { format })).token
  }
  return {
    signingKeys: JSON.stringify({ keys }),
    async issue(format, count) {
      const issued: string[] = []
      while (issued.length < count) {
        const width = Math.min(ISSUED_AT_ONCE, count - issued.length)
        issued.push(...(await Promise.all(Array.from({ length: width }, () => issueOne(format)))))
      }
      return issued
    },
  }
}
