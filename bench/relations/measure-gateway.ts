/** Measures requests for orders through the whole gateway, with and without a required relation. */
import { countsBetween, ORIGIN_BODY } from '../backends.ts'
import { offerInTurn } from '../open-load.ts'
import { ask, type Question } from '../requests/ask.ts'
import type { RequestsGateway } from '../requests/gateway.ts'
import { type Observed, observe } from '../requests/observe.ts'
import { bearing, problem } from '../requests/questions.ts'
import { RELATED, UNRELATED, type Variant } from '../requests/variants.ts'
import { type LatencyHistogram, rounded } from '../statistics.ts'
import { untilQuiet } from '../usage.ts'
import type { DirectRedis } from './direct-redis.ts'
import { CALLERS, callerName, pairsOf, tenantOf } from './graph.ts'

const CONNECTIONS = 20
/** Duration of the same load before the measurement, so that leases are granted. */
const HEAT_SECONDS = 0.4
/** More pairs than one measurement has responses, so that hardly any pair occurs twice. */
const MANY = 10_000
/** So few pairs that all decisions are cached. */
const FEW = 500
/** So few callers that units are leased for each of them. */
const HOT_CALLERS = 5
/**
 * Maximum number of additional scripts per call, for decisions that expire during the measurement.
 */
const MORE_SCRIPTS = 0.2
/** Maximum number of calls per response for leased units. */
const MOST_LEASED_CALLS = 0.1

/** A way to decide a request for an order. */
export interface Way {
  readonly title: string
  readonly variant: Variant
  readonly path: string
  readonly answer: 'allowed' | 'denied'
  /** Number of pairs of all callers, and number of callers. */
  readonly pairs: number
  readonly callers: number
  /** Redis scripts in one call. Undefined if there are hardly any calls. */
  readonly scripts?: number
}

const COLD = {
  variant: 'related',
  path: RELATED,
  answer: 'allowed',
  pairs: MANY,
  callers: CALLERS,
} as const satisfies Partial<Way>
export const WAYS = {
  unrelated: { ...COLD, path: UNRELATED, title: 'no relation demanded', scripts: 1 },
  cold: { ...COLD, title: 'decided in Redis', scripts: 2 },
  denied: { ...COLD, answer: 'denied', title: 'denied in Redis', scripts: 2 },
  cached: {
    ...{ ...COLD, variant: 'related-cached', pairs: FEW },
    ...{ title: 'decided before', scripts: 1 },
  },
  leased: {
    ...{ ...COLD, variant: 'related-leased', pairs: FEW, callers: HOT_CALLERS },
    title: 'decided before, units taken ahead',
  },
} as const satisfies Readonly<Record<string, Way>>
export type WayId = keyof typeof WAYS
export const WAY_IDS = Object.keys(WAYS) as readonly WayId[]

/** Tokens of the callers, by tenant. */
export type Callers = ReadonlyMap<string, readonly string[]>

/** Creates tokens of all callers for each size of a tenant's tuples. */
export async function mintCallers(
  { mint }: Pick<RequestsGateway, 'mint'>,
  sizes: readonly number[],
): Promise<Callers> {
  const callers = new Map<string, string[]>()
  for (const size of sizes) {
    const tokens: string[] = []
    for (let caller = 0; caller < CALLERS; caller++) {
      const [token] = await mint(1, { subject: callerName(caller), tenant: tenantOf(size) })
      tokens.push(token?.credential ?? '')
    }
    callers.set(tenantOf(size), tokens)
  }
  return callers
}

/**
 * Returns the requests for one size, with their expected responses. With many pairs, each round
 * uses new ones. With few pairs, all rounds use the same.
 */
export function questionsOf(
  callers: Callers,
  { path, answer, pairs, callers: asking }: Way,
  { size, round = 0 }: { readonly size: number; readonly round?: number },
): readonly Question[] {
  const tokens = callers.get(tenantOf(size)) ?? []
  const from = pairs === MANY ? round * pairs : 0
  const chosen = pairsOf(size, answer, pairs, from).filter(({ caller }) => caller < asking)
  return chosen.map(({ caller, order }) => {
    const of = { path: `${path}/${order}`, headers: bearing(tokens[caller] ?? '') }
    return answer === 'denied'
      ? problem('insufficient_permission', 403, of)
      : { ...of, method: 'GET', status: 200, answer: ORIGIN_BODY }
  })
}

export interface WayRound extends Observed {
  /** Redis scripts that ran in one call. */
  readonly scripts: number
}

/**
 * Performs one measurement with a closed load. Throws an `Error` of one line for a wrong response,
 * and for an unexpected number of calls to origin or Redis.
 */
export async function measureWay(
  gateway: RequestsGateway,
  redis: DirectRedis,
  way: WayId,
  { questions, seconds }: { readonly questions: readonly Question[]; readonly seconds: number },
): Promise<WayRound> {
  const { variant, answer } = WAYS[way]
  const isLeased = way === 'leased'
  const asking = { url: gateway.urlOf(variant), questions, connections: CONNECTIONS }
  await ask({ ...asking, until: { seconds: HEAT_SECONDS } })
  await untilQuiet(gateway.backends)
  const before = await redis.usage()
  const observed = await observe(
    gateway,
    { ...asking, until: { seconds } },
    {
      origin: answer === 'allowed' ? 1 : 0,
      redis: isLeased ? 0 : 1,
      // The number of calls is checked as a share instead.
      ...(isLeased && { redisBeside: Number.POSITIVE_INFINITY }),
    },
  )
  const after = await redis.usage()
  const { right, counts } = observed
  if (isLeased && counts.calls > right * MOST_LEASED_CALLS)
    throw new Error(`${way}: ${right} answers, but ${counts.calls} calls to Redis`)
  const scripts = rounded((after.calls - before.calls) / Math.max(1, counts.calls), 3)
  refuseOtherScripts(WAYS[way], scripts)
  return { ...observed, scripts }
}

/** Throws an `Error` of one line if an unexpected number of checks ran in Redis. */
export function refuseOtherScripts({ title, scripts: expected }: Way, scripts: number): void {
  if (expected !== undefined && !(scripts >= expected && scripts <= expected + MORE_SCRIPTS))
    throw new Error(`${title}: ${scripts} scripts in a call to Redis, not ${expected}`)
}

/** One load of several that are offered in turn. */
export interface Course {
  readonly way: 'unrelated' | 'cold' | 'cached'
  readonly size: number
}

export interface Paced {
  /** Latencies of each course, in order. */
  readonly each: readonly LatencyHistogram[]
  /** Correct responses, and refusals of an overloaded machine. */
  readonly right: number
  readonly shed: number
  /** Calls to Redis per request. */
  readonly calls: number
}

/**
 * Offers one load at a fixed rate to all courses in turn, request by request. Throws an `Error` of
 * one line for a wrong response, and for one that is not from the origin.
 */
export async function measurePaced(
  gateway: RequestsGateway,
  callers: Callers,
  courses: readonly Course[],
  offer: { readonly ratePerSecond: number; readonly seconds: number },
): Promise<Paced> {
  await untilQuiet(gateway.backends)
  const before = await gateway.backends.counts()
  const targets = courses.map(({ way, size }) => ({
    ...({ url: gateway.urlOf(WAYS[way].variant), method: 'GET', expectBody: ORIGIN_BODY } as const),
    requests: questionsOf(callers, WAYS[way], { size }).map(({ path, headers }) => ({
      path,
      headers: { ...headers },
    })),
  }))
  const { each, right, sent, shed } = await offerInTurn(targets, { ...offer, mayShed: true })
  await untilQuiet(gateway.backends)
  const { requests, calls } = countsBetween(before, await gateway.backends.counts())
  if (requests < right) throw new Error(`${right} answers, but ${requests} requests to the origin`)
  const shedInAll = Object.values(shed).reduce((sum, count) => sum + count, 0)
  return { each, right, shed: shedInAll, calls: rounded(calls / sent, 3) }
}
