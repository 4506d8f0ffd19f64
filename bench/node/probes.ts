/**
 * Requests that check each gateway before the measurement. An unexpected response fails the run.
 */
import { randomUUID } from 'node:crypto'
import { signAccessToken } from '../../dev/start/access-token.ts'
import { createRevocations } from '../../src/access/revocation/redis/revocations.ts'
import { tokenIdHash } from '../../src/access/token-id.ts'
import { createRedisRest } from '../../src/redis/rest.ts'
import { bearing, forged, ORDERS_PATH } from '../load/questions.ts'
import { type Backends, ORIGIN_BODY } from '../stack/backends.ts'
import { type BenchTokens, PUBLIC_URL } from '../stack/credentials.ts'

/** Kinds of requests that check a gateway before the measurement. */
const PROBES = {
  good: 'a good request',
  missing: 'no token',
  forged: 'a forged token',
  expired: 'an expired token',
  revoked: 'a revoked token',
  powerless: 'a caller without the role',
  'bad-query': 'a bad query',
  ambiguous: 'an ambiguous path',
} as const
export type ProbeId = keyof typeof PROBES

/** A server that decodes the path before it resolves `..` reads `/orders`. */
const AMBIGUOUS_PATH = '/nothing/..%2forders?limit=20'
const BAD_PATH = '/orders?limit=0'
const TTL_SECONDS = 600
const HOUR_SECONDS = 3_600
const REDIS_TIMEOUT_MS = 5_000
/** Bad requests come from an address that sends nothing else. */
const PROBE_ADDRESS = '198.51.100.23'

export interface Probe {
  readonly id: ProbeId
  readonly path: string
  /** Undefined: no token. */
  readonly token: string | undefined
}

/** Creates the probes. Revokes one token for our gateway and for the opponent by hand. */
export async function makeProbes(
  { writers, powerless, signingKeys }: BenchTokens,
  { redis }: Pick<Backends, 'redis'>,
): Promise<readonly Probe[]> {
  const [good = ''] = writers
  const tokenId = randomUUID()
  const sign = (nowSeconds: number) =>
    signAccessToken(
      { subject: 'caller-0', client: 'bench', roles: ['writer'], tokenId, ttlSeconds: TTL_SECONDS },
      { PUBLIC_URL, SIGNING_KEYS: signingKeys },
      nowSeconds,
    )
  const nowSeconds = Math.floor(Date.now() / 1000)
  const rest = createRedisRest({ ...redis, timeoutMs: REDIS_TIMEOUT_MS })
  await createRevocations(rest, Date.now).revokeToken({
    tokenIdHash: await tokenIdHash(PUBLIC_URL, tokenId),
    untilSeconds: nowSeconds + TTL_SECONDS,
  })
  await rest.send([['SET', `revoked:${tokenId}`, '1', 'EX', TTL_SECONDS]])
  return [
    { id: 'good', path: ORDERS_PATH, token: good },
    { id: 'missing', path: ORDERS_PATH, token: undefined },
    { id: 'forged', path: ORDERS_PATH, token: forged(good) },
    { id: 'expired', path: ORDERS_PATH, token: await sign(nowSeconds - HOUR_SECONDS) },
    { id: 'revoked', path: ORDERS_PATH, token: await sign(nowSeconds) },
    { id: 'powerless', path: ORDERS_PATH, token: powerless },
    { id: 'bad-query', path: BAD_PATH, token: good },
    { id: 'ambiguous', path: AMBIGUOUS_PATH, token: good },
  ]
}

export interface Tried {
  readonly title: string
  /** The statuses of refusals. Default 200. */
  readonly refuses: Readonly<Partial<Record<ProbeId, number>>>
}

/**
 * Sends every probe twice, because a cached result must not change the response. A refused request
 * must not reach the origin. Throws an `Error` of one line, or returns the number of checked
 * responses.
 */
export async function tryOut(
  { title, refuses }: Tried,
  url: string,
  probes: readonly Probe[],
  backends: Pick<Backends, 'counts'>,
): Promise<number> {
  for (const { id, path, token } of [...probes, ...probes]) {
    const expected = refuses[id] ?? 200
    const { authorization = '', ...anonymous } = bearing(token ?? '', PROBE_ADDRESS)
    const headers = token === undefined ? anonymous : { ...anonymous, authorization }
    const { requests: before } = await backends.counts()
    const response = await fetch(url + path, { headers })
    const body = await response.text()
    const { requests: after } = await backends.counts()
    const isRight = response.status === expected && (expected !== 200 || body === ORIGIN_BODY)
    if (!isRight) throw new Error(`${title} responds to ${PROBES[id]} with ${response.status}`)
    if (after - before !== (expected === 200 ? 1 : 0))
      throw new Error(`${title}: ${PROBES[id]} reached the origin ${after - before} times`)
  }
  return 2 * probes.length
}
