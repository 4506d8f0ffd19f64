/** What each gateway is tried with before it is measured: whoever answers otherwise fails the run. */
import { randomUUID } from 'node:crypto'
import { signAccessToken } from '../../dev/start/access-token.ts'
import { createRedisRest } from '../../src/stores/upstash/rest.ts'
import { createRevocations } from '../../src/stores/upstash/revocations.ts'
import { tokenIdHash } from '../../src/tokens/token-id.ts'
import { type Backends, ORIGIN_BODY } from '../backends.ts'
import { headersOf } from '../order-requests.ts'
import { forged } from '../token-costs/forged.ts'
import { type BenchTokens, PUBLIC_URL } from '../tokens.ts'
import type { Contestant, ProbeId, Running } from './contestant.ts'

/** Rows of the table that says what each refuses. */
export const PROBES: Readonly<Record<ProbeId, string>> = {
  good: 'a good request',
  missing: 'no token',
  forged: 'a forged token',
  expired: 'an expired token',
  revoked: 'a revoked token',
  powerless: 'a caller without the role',
  'bad-query': 'a query that is not as it should be',
  ambiguous: 'a path that origins read in two ways',
}

const GOOD_PATH = '/orders?limit=20'
/** `/orders` to whoever decodes it before it looks for `..`. */
const AMBIGUOUS_PATH = '/nothing/..%2forders?limit=20'
const BAD_PATH = '/orders?limit=0'
const TTL_SECONDS = 600
const HOUR_SECONDS = 3_600
const REDIS_TIMEOUT_MS = 5_000
/** What is bad on purpose comes from an address that has sent nothing else. */
const PROBE_ADDRESS = '198.51.100.23'

export interface Probe {
  readonly id: ProbeId
  readonly path: string
  /** Undefined: none is sent. */
  readonly token: string | undefined
}

/** Signs what is needed, and revokes one token as our gateway and as the handwritten one do. */
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
    { id: 'good', path: GOOD_PATH, token: good },
    { id: 'missing', path: GOOD_PATH, token: undefined },
    { id: 'forged', path: GOOD_PATH, token: forged(good) },
    { id: 'expired', path: GOOD_PATH, token: await sign(nowSeconds - HOUR_SECONDS) },
    { id: 'revoked', path: GOOD_PATH, token: await sign(nowSeconds) },
    { id: 'powerless', path: GOOD_PATH, token: powerless },
    { id: 'bad-query', path: BAD_PATH, token: good },
    { id: 'ambiguous', path: AMBIGUOUS_PATH, token: good },
  ]
}

/**
 * Sends every probe twice: what has been remembered is answered no other way. A refusal must not
 * reach the origin. Throws an `Error` of one line; else returns how many answers were looked at.
 */
export async function tryOut(
  { title, refuses }: Pick<Contestant, 'title' | 'refuses'>,
  { url }: Pick<Running, 'url'>,
  probes: readonly Probe[],
  backends: Pick<Backends, 'counts'>,
): Promise<number> {
  for (const { id, path, token } of [...probes, ...probes]) {
    const expected = refuses[id] ?? 200
    const { authorization, ...others } = headersOf(token ?? '', 'read')
    const headers = {
      ...others,
      'cf-connecting-ip': PROBE_ADDRESS,
      ...(token !== undefined && { authorization: authorization ?? '' }),
    }
    const { requests: before } = await backends.counts()
    const response = await fetch(url + path, { headers })
    const body = await response.text()
    const { requests: after } = await backends.counts()
    const isRight = response.status === expected && (expected !== 200 || body === ORIGIN_BODY)
    if (!isRight) throw new Error(`${title} answers ${PROBES[id]} with ${response.status}`)
    if (after - before !== (expected === 200 ? 1 : 0))
      throw new Error(`${title}: ${PROBES[id]} has reached the origin ${after - before} times`)
  }
  return 2 * probes.length
}
