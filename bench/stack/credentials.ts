/** Keys, callers and clients of the benchmark. */
import { randomBytes, randomUUID } from 'node:crypto'
import { calculateJwkThumbprint, exportJWK, generateKeyPair } from 'jose'
import type { TokenFormat } from '../../src/access/tokens/access-grant.ts'
import { createReferenceStore } from '../../src/access/tokens/redis/references.ts'
import { credentialHash } from '../../src/access/tokens/reference.ts'
import { parseSigningKeys } from '../../src/access/tokens/signing-keys.ts'
import { createTokenIssuer } from '../../src/access/tokens/token-issuer.ts'
import { createRedisRest } from '../../src/redis/rest.ts'
import type { Backends } from './backends.ts'

/** Issuer and audience. It is never resolved. */
export const PUBLIC_URL = 'https://gateway.bench.test'

/** Grant and type of a token that is exchanged for another one (RFC 8693). */
export const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
export const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'

/** Callers, each with its own limit window in Redis. */
const SUBJECTS = 50
const TTL_SECONDS = 3_600
const RSA_BITS = 2_048
const SECRET_BYTES = 32
const ROLES: readonly string[] = ['writer']

export interface Credentials {
  /** Private JWK Set of the gateway, JSON. */
  readonly signingKeys: string
  /** Issues tokens of `caller-0` to `caller-49` in turn, with a life of one hour. Default roles: `writer`. */
  mint(count: number, roles?: readonly string[]): Promise<readonly string[]>
}

/** Creates a key for each algorithm; the first one is the default. */
export async function createCredentials(
  { redis }: Pick<Backends, 'redis'>,
  algorithms: readonly string[] = ['ES256'],
): Promise<Credentials> {
  const keys = parseSigningKeys(JSON.parse(await newSigningKeys(algorithms)))
  const references = createReferenceStore(createRedisRest(redis))

  const issuer = createTokenIssuer({
    keys,
    references,
    issuer: PUBLIC_URL,
    defaultTtlSeconds: TTL_SECONDS,
    now: Date.now,
  })

  async function mint(count: number, roles = ROLES): Promise<readonly string[]> {
    const tokens: string[] = []
    for (let i = 0; i < count; i++) {
      const subject = `caller-${i % SUBJECTS}`
      const grant = { subject, client: 'bench', roles, scopes: [], audiences: [PUBLIC_URL] }
      tokens.push((await issuer.issue({ ...grant, tenant: undefined })).token)
    }
    return tokens
  }

  return { signingKeys: JSON.stringify({ keys }), mint }
}

/** Creates a private JWK Set, JSON, with a key for each algorithm. */
export async function newSigningKeys(algorithms: readonly string[]): Promise<string> {
  return JSON.stringify({ keys: await Promise.all(algorithms.map(newKey)) })
}

async function newKey(alg: string) {
  const { privateKey } = await generateKeyPair(alg, { extractable: true, modulusLength: RSA_BITS })
  const jwk = await exportJWK(privateKey)
  return { ...jwk, kid: await calculateJwkThumbprint(jwk), alg, use: 'sig' }
}

/** The tokens for requests to `/orders`. */
export interface BenchTokens {
  readonly writers: readonly string[]
  /** A valid token of a caller without any role. */
  readonly powerless: string
  /** Private JWK Set of the gateway, JSON. */
  readonly signingKeys: string
}

export async function mintTokens({ signingKeys, mint }: Credentials): Promise<BenchTokens> {
  const [powerless = ''] = await mint(1, [])
  return { writers: await mint(SUBJECTS), powerless, signingKeys }
}

/** Returns the issuer of the tokens with its public JWK Set, JSON. */
export function issuerOf({ signingKeys }: Pick<BenchTokens, 'signingKeys'>) {
  const { keys } = JSON.parse(signingKeys) as { keys: readonly Readonly<Record<string, unknown>>[] }
  const published = keys.map(({ kty, crv, x, y, kid, alg }) => ({
    ...{ kty, crv, x, y, kid, alg },
    use: 'sig',
  }))
  return { jwks: JSON.stringify({ keys: published }), issuer: PUBLIC_URL }
}

export interface TokenClient {
  readonly id: string
  readonly secret: string
}

export function newClient(): TokenClient {
  return { id: randomUUID(), secret: `pcs_${randomBytes(SECRET_BYTES).toString('base64url')}` }
}

/** Returns the client's entry in the gateway's variable `CLIENTS`. */
export async function clientEntry(
  { id, secret }: TokenClient,
  settings: {
    readonly grants: readonly string[]
    readonly roles?: readonly string[]
    readonly tokenFormat?: TokenFormat
  },
): Promise<object> {
  return { id, secretSha256: await credentialHash(secret), ...settings }
}
