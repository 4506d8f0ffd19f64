/** The handwritten stack, under the same `workerd serve` as our gateway. */
import { bundleOnce } from '../../stack/bundle.ts'
import { startWorkerd } from '../../stack/workerd.ts'
import type { Grounds, Peer } from '../peer.ts'

/** Path of the Worker's configuration in the checkout. */
export const HANDWRITTEN_CONFIG = 'bench/peers/handwritten/worker.toml'

const COMMON = {
  optional: false,
  compiles: true,
  identifies: true,
  refuses: {
    missing: 401,
    forged: 401,
    expired: 401,
    revoked: 401,
    powerless: 403,
    'bad-query': 400,
    ambiguous: 404,
  },
  does: {
    cachesTokens: 'no',
    revokes: 'no',
    limit: 'in Redis',
    audit: 'no',
    identity: 'subject',
  },
} as const satisfies Partial<Peer>

/** Checks revocation, then the limit: one middleware each, as in the READMEs. */
export const handwritten: Peer = {
  ...COMMON,
  id: 'handwritten',
  title: 'handwritten',
  inQuick: true,
  redisCalls: [2, 2],
  start: (grounds) => start('in-turn', grounds),
}

/** Checks both at the same time, so that the client can send them in one call. */
export const handwrittenAtOnce: Peer = {
  ...COMMON,
  id: 'handwritten-at-once',
  title: 'handwritten, concurrent calls to Redis',
  inQuick: false,
  redisCalls: [1, 2],
  start: (grounds) => start('at-once', grounds),
}

async function start(path: string, { backends, jwks, issuer, limit, directory, bundles }: Grounds) {
  const { url, token } = backends.redis
  const workerd = await startWorkerd({
    bundle: await bundleOnce(HANDWRITTEN_CONFIG, bundles),
    variables: {
      UPSTASH_REDIS_REST_URL: url,
      UPSTASH_REDIS_REST_TOKEN: token,
      ORIGIN_URL: backends.originUrl,
      JWKS: jwks,
      ISSUER: issuer,
      LIMIT: String(limit),
    },
    names: ['handwritten'],
    queueAddress: new URL(backends.originUrl).host,
    directory,
  })
  const { pid, close } = workerd
  return { url: `${workerd.originOf('handwritten')}/${path}`, pid, version: 'workerd', close }
}
