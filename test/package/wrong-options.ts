/** Wrong names in options, which every supported compiler must report. It is compiled and not run. */
import { portcullis } from 'portcullis/hono'

interface Env {
  readonly ISSUER: string
}

const redis = { url: 'https://redis.test', token: 'secret' }
const issuer = { issuer: 'https://issuer.test', audience: 'notes' }
const issuers = [issuer]

export const guards = [
  portcullis({ issuers, redis, roles: {} }),
  portcullis((env: Env) => ({ issuers: [{ ...issuer, issuer: env.ISSUER }], redis, roles: {} })),
  // @ts-expect-error: roles is misspelled
  portcullis({ issuers, redis, rolls: {} }),
  // @ts-expect-error: roles is misspelled
  portcullis((_: Env) => ({ issuers, redis, rolls: {} })),
  // @ts-expect-error: tokens is no option of redis
  portcullis((_: Env) => ({ issuers, redis: { ...redis, tokens: '' } })),
  // @ts-expect-error: no such preset
  portcullis((_: Env) => ({ issuers: [{ ...issuer, preset: 'no' }], redis })),
  // @ts-expect-error: rolesClaim is misspelled
  portcullis((_: Env) => ({ issuers: [{ ...issuer, roleClaim: '' }], redis })),
]
