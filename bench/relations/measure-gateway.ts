/** Measures requests for orders through the whole gateway, with and without a required relation. */
import { sendClosed } from '../load/closed.ts'
import { bearing, problem, type Question } from '../load/questions.ts'
import { type Contestant, measurePaced } from '../measure/rounds.ts'
import { rounded, sumOf } from '../measure/statistics.ts'
import { untilQuiet } from '../measure/usage.ts'
import { ORIGIN_BODY } from '../stack/backends.ts'
import type { VariantGateway } from '../stack/gateway.ts'
import { RELATED, UNRELATED, type Variant } from '../workers/variants.ts'
import type { DirectRedis } from './direct-redis.ts'
import { CALLERS, callerName, pairsOf, tenantOf } from './graph.ts'

export const CONNECTIONS = 20
/** Duration of the same load before the measurement, so that leases are granted. */
const HEAT_SECONDS = 0.4
/** More pairs than one measurement has responses, so that hardly any pair occurs twice. */
const MANY = 10_000
/** So few pairs that all decisions are cached. */
const FEW = 500
/** So few callers that units are leased for each of them. */
const HOT_CALLERS = 5
/** Maximum number of additional scripts per call, for decisions that expire. */
const MORE_SCRIPTS = 0.2
const MOST_LEASED_CALLS = 0.1

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
  unrelated: { ...COLD, path: UNRELATED, title: 'no relation required', scripts: 1 },
  cold: { ...COLD, title: 'decided in Redis', scripts: 2 },
  denied: { ...COLD, answer: 'denied', title: 'denied in Redis', scripts: 2 },
  cached: {
    ...COLD,
    variant: 'related-cached',
    pairs: FEW,
    title: 'cached decision',
    scripts: 1,
  },
  leased: {
    ...COLD,
    variant: 'related-leased',
    pairs: FEW,
    callers: HOT_CALLERS,
    title: 'cached decision, leased units',
  },
} as const satisfies Readonly<Record<string, Way>>
export type WayId = keyof typeof WAYS
export const WAY_IDS = Object.keys(WAYS) as readonly WayId[]

export type Callers = ReadonlyMap<string, readonly string[]>

/** Creates tokens of all callers for each size of a tenant's tuples. */
export async function mintCallers(
  { mint }: Pick<VariantGateway, 'mint'>,
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
  { path, answer, pairs, callers: count }: Way,
  { size, round = 0 }: { readonly size: number; readonly round?: number },
): readonly Question[] {
  const tokens = callers.get(tenantOf(size)) ?? []
  const from = pairs === MANY ? round * pairs : 0
  const chosen = pairsOf(size, answer, pairs, from).filter(({ caller }) => caller < count)
  return chosen.map(({ caller, order }) => {
    const of = { path: `${path}/${order}`, headers: bearing(tokens[caller] ?? '') }
    return answer === 'denied'
      ? problem('insufficient_permission', 403, of)
      : { ...of, method: 'GET', status: 200, answer: ORIGIN_BODY }
  })
}

/** Returns a way as a contestant. Adds the scripts per call of each measurement to `scripts`. */
export function wayContestant(
  { pid, urlOf, backends }: VariantGateway,
  redis: DirectRedis,
  id: WayId,
  {
    scripts,
    questionsIn,
  }: {
    readonly scripts: number[]
    readonly questionsIn: (round: number) => readonly Question[]
  },
): Contestant {
  const { title, variant, answer } = WAYS[id]
  const isLeased = id === 'leased'
  const url = urlOf(variant)
  let before = 0
  return {
    id,
    title,
    pid,
    url,
    questions: questionsIn(0),
    expected: {
      origin: answer === 'allowed' ? 1 : 0,
      redis: isLeased ? 0 : 1,
      // The number of calls is checked as a share instead.
      ...(isLeased && { redisBeside: Number.POSITIVE_INFINITY }),
    },
    async prepare(round) {
      const questions = questionsIn(round)
      // Under the same load, leases are granted before the measurement.
      const heat = { connections: CONNECTIONS, until: { seconds: HEAT_SECONDS }, mayShed: true }
      await sendClosed({ url, questions, ...heat })
      await untilQuiet(backends)
      before = (await redis.usage()).calls
      return questions
    },
    async check({ requests, redisCalls }) {
      if (isLeased && redisCalls > MOST_LEASED_CALLS)
        throw new Error(`${title}: ${redisCalls} calls to Redis per request, of ${requests}`)
      const ran = (await redis.usage()).calls - before
      const each = rounded(ran / Math.max(1, redisCalls * requests), 3)
      refuseOtherScripts(WAYS[id], each)
      scripts.push(each)
    },
  }
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

/** Offers one load to all courses in turn. Throws for a wrong or missing response. */
export async function measureCourses(
  { urlOf, backends }: VariantGateway,
  callers: Callers,
  courses: readonly Course[],
  offer: { readonly ratePerSecond: number; readonly seconds: number },
) {
  const targets = courses.map(({ way, size }) => ({
    url: urlOf(WAYS[way].variant),
    questions: questionsOf(callers, WAYS[way], { size }),
  }))
  const load = { ...offer, mayShed: true }
  const { samples, counts, sent, right, shed } = await measurePaced(targets, load, backends)
  if (counts.requests < right)
    throw new Error(`${counts.requests} requests at the origin for ${right} responses`)
  return {
    samples,
    right,
    shed: sumOf(Object.values(shed), (times) => times),
    calls: rounded(counts.calls / sent, 3),
  }
}
