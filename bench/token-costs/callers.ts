/** The keys, clients and callers of the scenario `tokens`. */
import { randomBytes, randomUUID } from 'node:crypto'
import { calculateJwkThumbprint, exportJWK, generateKeyPair } from 'jose'
import { createRedisRest } from '../../src/redis/rest.ts'
import type { AccessGrant, IssueOptions, TokenFormat } from '../../src/tokens/access-grant.ts'
import { newApiKey } from '../../src/tokens/api-key.ts'
import { createReferenceStore } from '../../src/tokens/redis/references.ts'
import { credentialHash } from '../../src/tokens/reference.ts'
import { parseSigningKeys } from '../../src/tokens/signing-keys.ts'
import { createTokenIssuer } from '../../src/tokens/token-issuer.ts'
import type { Backends } from '../backends.ts'
import { PUBLIC_URL } from '../tokens.ts'
import { ALGORITHMS } from './operations.ts'

/** Callers of the pipeline, each with a window of its own in Redis. */
const SUBJECTS = 50
const FEW_TOKENS = 100
/** As many as a token cache holds. */
export const MANY_TOKENS = 10_000
/** For a verifier without a cache, to which every one is new; RSA signs slowly. */
const RSA_TOKENS = 100
const TTL_SECONDS = 3_600
const RSA_BITS = 2_048
const SECRET_BYTES = 32
const ROLES = ['writer']

/** A credential, and whose it is. */
export interface Holder {
  readonly credential: string
  readonly subject: string
}

export interface TokenClient {
  readonly id: string
  readonly secret: string
}

export interface TokenCallers {
  /** Private JWK Set with a key of each algorithm, JSON. */
  readonly signingKeys: string
  /** The gateway's variable `CLIENTS`. */
  readonly clients: string
  /** Whose tokens are JWTs (ES256), and whose are opaque. */
  readonly client: Readonly<Record<TokenFormat, TokenClient>>
  readonly few: readonly Holder[]
  readonly many: readonly Holder[]
  /** As most identity providers sign. */
  readonly fewRsa: readonly Holder[]
  /** For the whole pipeline. */
  readonly jwts: readonly Holder[]
  readonly opaques: readonly Holder[]
  readonly apiKeys: readonly Holder[]
}

/** Makes all of them, with the product's own issuer; what is opaque is put into Redis. */
export async function prepareCallers({ redis }: Backends): Promise<TokenCallers> {
  const keys = parseSigningKeys({ keys: await Promise.all(ALGORITHMS.map(keyFor)) })
  const references = createReferenceStore(createRedisRest(redis))
  const issuer = createTokenIssuer({
    ...{ keys, references, issuer: PUBLIC_URL },
    defaultTtlSeconds: TTL_SECONDS,
  })
  async function holders(count: number, options: IssueOptions = {}): Promise<Holder[]> {
    const made: Holder[] = []
    for (let i = 0; i < count; i++) {
      const subject = `caller-${i % SUBJECTS}`
      made.push({ subject, credential: (await issuer.issue(grantFor(subject), options)).token })
    }
    return made
  }
  async function apiKeyOf(subject: string): Promise<Holder> {
    const credential = newApiKey()
    const nowSeconds = Math.floor(Date.now() / 1000)
    await references.put(await credentialHash(credential), {
      ...{ kind: 'api_key', tokenId: randomUUID(), tokenIssuer: PUBLIC_URL, issuer: PUBLIC_URL },
      ...{ subject, roles: ROLES, scopes: [], audiences: [PUBLIC_URL] },
      ...{ issuedAtSeconds: nowSeconds, expiresAtSeconds: nowSeconds + TTL_SECONDS },
    })
    return { subject, credential }
  }
  const apiKeys: Holder[] = []
  for (let i = 0; i < SUBJECTS; i++) apiKeys.push(await apiKeyOf(`caller-${i}`))
  const client = { jwt: newClient(), opaque: newClient() }
  return {
    signingKeys: JSON.stringify({ keys }),
    clients: JSON.stringify([
      await configured(client.jwt, 'jwt'),
      await configured(client.opaque, 'opaque'),
    ]),
    client,
    few: await holders(FEW_TOKENS),
    many: await holders(MANY_TOKENS),
    fewRsa: await holders(RSA_TOKENS, { algorithm: 'RS256' }),
    jwts: await holders(SUBJECTS),
    opaques: await holders(SUBJECTS, { format: 'opaque' }),
    apiKeys,
  }
}

async function keyFor(alg: (typeof ALGORITHMS)[number]) {
  const { privateKey } = await generateKeyPair(alg, { extractable: true, modulusLength: RSA_BITS })
  const jwk = await exportJWK(privateKey)
  return { ...jwk, kid: await calculateJwkThumbprint(jwk), alg, use: 'sig' }
}

function grantFor(subject: string): AccessGrant {
  return { subject, client: 'bench', roles: ROLES, scopes: [], audiences: [PUBLIC_URL] }
}

function newClient(): TokenClient {
  return { id: randomUUID(), secret: `pcs_${randomBytes(SECRET_BYTES).toString('base64url')}` }
}

async function configured({ id, secret }: TokenClient, tokenFormat: TokenFormat) {
  const secretSha256 = await credentialHash(secret)
  return { id, secretSha256, grants: ['client_credentials'], roles: ROLES, tokenFormat }
}
