/** Kinds of refusals: the request, the expected response, and how to reach that state. */
import { createRedisRest } from '../../src/redis/rest.ts'
import { createRevocations } from '../../src/revocation/redis/revocations.ts'
import { ask } from '../load/closed.ts'
import { bearing, problem, type Question, read } from '../load/questions.ts'
import { ORIGIN_BODY } from '../stack/backends.ts'
import { PUBLIC_URL } from '../stack/credentials.ts'
import { type StartContext, startVariants, type VariantGateway } from '../stack/gateway.ts'
import { forged } from '../tokens/operations.ts'
import { startHoldingOrigin } from './holding-origin.ts'
import { crowding, repeating } from './states.ts'

/** From the shipped policy. */
const FAILURES_BEFORE_THROTTLE = 20
const VIOLATIONS_BEFORE_BAN = 5
const HOUR_SECONDS = 3_600
/** Age of a token with a life of one hour. */
const EXPIRED_AGE_SECONDS = 7_200
/**
 * When a cache entry expires, each connection may call Redis once. Measurements are shorter than
 * two cache lifetimes.
 */
const ASKED_AGAIN = 45

/** The requests to send now, and a function that restores the state. */
export interface Ready {
  readonly question: Question
  readonly done?: () => Promise<void>
}

export interface Refusal {
  readonly id: string
  /** Title in tables. */
  readonly title: string
  readonly isolate: 'gateway' | 'crowded'
  /** Calls to Redis per request. */
  readonly calls: 0 | 1
  /** Maximum number of additional calls in a measurement, after responses or occasional. */
  readonly callsBeside: number
  /** Creates the state that causes the refusal, before each measurement. */
  prepare(): Promise<Ready>
}

export interface Refusals {
  readonly gateway: VariantGateway
  readonly list: readonly Refusal[]
  /** A request that is admitted. */
  readonly good: Question
}

/** Starts the gateway, creates all callers and warms up. */
export async function prepareRefusals(context: StartContext): Promise<Refusals> {
  const holding = await startHoldingOrigin(ORIGIN_BODY)
  context.shutdown.defer(holding.close)
  const gateway = await startVariants(context, ['passthrough', 'gateway', 'crowded'], async () => ({
    OTHER_ORIGIN_URL: holding.url,
  }))
  const callers = await callersOf(gateway)
  const { good, spent } = callers
  const url = gateway.urlOf('gateway')
  const crowdedUrl = gateway.urlOf('crowded')
  const bad = (credential: string, address?: string) =>
    problem('invalid_token', 401, { headers: bearing(credential, address) })
  const of = (code: string, status: number, path: string) =>
    problem(code, status, { path, headers: bearing(good) })

  const list: readonly Refusal[] = [
    refusal('no-token', 'no token', problem('missing_token', 401, {})),
    refusal('malformed', 'a malformed token', bad('not.a.token')),
    refusal('forged', 'a forged signature', bad(forged(good))),
    refusal('expired', 'an expired token', bad(callers.expired)),
    refusal('no-route', 'a path that is no route', of('not_found', 404, '/customers')),
    refusal('ambiguous', 'an ambiguous path', of('ambiguous_path', 400, '/orders%2f1')),
    refusal('wrong-method', 'a wrong method', {
      ...of('method_not_allowed', 405, '/orders'),
      method: 'DELETE',
    }),
    {
      ...refusal(
        'exhausted',
        'a limit, remembered',
        problem('rate_limited', 429, { path: '/once', headers: bearing(spent) }),
      ),
      callsBeside: ASKED_AGAIN,
    },
    {
      ...refusal('revoked', 'a revoked token, remembered', bad(callers.revoked)),
      callsBeside: ASKED_AGAIN,
    },
    {
      ...refusal('throttled', 'a throttled address', bad(callers.expired)),
      prepare: repeating(url, FAILURES_BEFORE_THROTTLE, (address) => ({
        before: bad(callers.expired, address),
        after: problem('rate_limited', 429, { headers: bearing(callers.expired, address) }),
      })),
    },
    {
      ...refusal('banned', 'a banned address', bad(forged(good))),
      callsBeside: FAILURES_BEFORE_THROTTLE + 2,
      prepare: repeating(url, VIOLATIONS_BEFORE_BAN, (address) => ({
        before: bad(forged(good), address),
        after: problem('banned', 403, { headers: bearing(forged(good), address) }),
      })),
    },
    {
      ...refusal('crowded', 'load that is shed', of('overloaded', 503, '/orders')),
      isolate: 'crowded',
      prepare: crowding(holding, crowdedUrl, {
        held: read(good),
        after: of('overloaded', 503, '/orders'),
      }),
    },
    { ...refusal('cut-off', 'a subject cut off', bad(callers.revokeBefore)), calls: 1 },
    {
      ...refusal(
        'no-permission',
        'no permission',
        problem('insufficient_permission', 403, { headers: bearing(callers.powerless) }),
      ),
      calls: 1,
    },
    { ...refusal('bad-input', 'bad input', of('invalid_input', 422, '/orders?limit=0')), calls: 1 },
    {
      ...refusal('signatures', 'input like an attack', of('input_refused', 403, ATTACK_PATH)),
      calls: 1,
    },
  ]
  // Uses up the limit.
  await ask({ url, questions: [{ ...read(spent), path: '/once' }], connections: 1, until: 'once' })
  return { gateway, list, good: read(good) }
}

/** SQL injection, as scanners send it. */
const ATTACK_PATH = `/search?q=${encodeURIComponent("1' UNION SELECT password FROM users--")}`

const refusal = (id: string, title: string, question: Question): Refusal => ({
  ...{ id, title, isolate: 'gateway', calls: 0, callsBeside: 0 },
  prepare: async () => ({ question }),
})

async function callersOf({ backends, mint }: VariantGateway) {
  const revocations = createRevocations(createRedisRest(backends.redis), Date.now)
  const nowSeconds = Math.floor(Date.now() / 1000)
  const tokenOf = async (options: Parameters<typeof mint>[1] = {}) => {
    const [token] = await mint(1, options)
    if (token === undefined) throw new Error('no token was issued')
    return token
  }
  const revoked = await tokenOf()
  const untilSeconds = nowSeconds + HOUR_SECONDS
  await revocations.revokeToken({ tokenIdHash: revoked.tokenIdHash, untilSeconds })
  const revokeBefore = await tokenOf({ subject: 'cut-off' })
  await revocations.revokeBefore({
    ...{ kind: 'subject', issuer: PUBLIC_URL, value: revokeBefore.subject },
    ...{ atSeconds: nowSeconds + 1, ttlSeconds: HOUR_SECONDS },
  })
  return {
    good: (await tokenOf()).credential,
    expired: (await tokenOf({ ageSeconds: EXPIRED_AGE_SECONDS })).credential,
    spent: (await tokenOf({ subject: 'spent' })).credential,
    powerless: (await tokenOf({ roles: [] })).credential,
    revoked: revoked.credential,
    revokeBefore: revokeBefore.credential,
  }
}
