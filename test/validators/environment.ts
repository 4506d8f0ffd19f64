/** Environments, valid and almost valid, and the errors that they cause. */
import { createHash } from 'node:crypto'
import { Misconfigured } from '../../src/errors.ts'
import { type environmentSchema, parseConfig } from '../../src/features/environment.ts'
import { createSigner } from '../access/tokens/signer.ts'

export const [es256, rs256, eddsa] = await Promise.all([
  createSigner('ES256'),
  createSigner('RS256'),
  createSigner('EdDSA'),
])
/** Returns 32 bytes without a pattern, the same in each run. */
export const secret = (n = 0) => createHash('sha256').update(`key ${n}`).digest('base64url')
export const good = {
  UPSTASH_REDIS_REST_URL: 'https://eu1-x.upstash.io',
  UPSTASH_REDIS_REST_TOKEN: secret(),
  ORIGIN_URL: 'https://origin.test',
  PUBLIC_URL: 'https://gateway.test/',
}
export const remote = {
  issuer: 'https://idp.test',
  audience: 'api',
  jwksUri: 'https://idp.test/jwks',
}
export const withIssuers = (...issuers: object[]) => ({ ...good, ISSUERS: JSON.stringify(issuers) })
export const withKeys = (...keys: unknown[]) => ({
  ...good,
  SIGNING_KEYS: JSON.stringify({ keys }),
})

export function mistakes(env: unknown, schema?: typeof environmentSchema): readonly string[] {
  try {
    parseConfig(env, schema)
    return []
  } catch (error) {
    if (error instanceof Misconfigured) return error.mistakes
    throw error
  }
}
