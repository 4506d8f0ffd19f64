/** Cost of a relation check over five levels, for any number of tuples. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../../dev/start/settings.ts'
import { compileModel } from '../../src/access/relations/compile-model.ts'
import { createRelationCheck } from '../../src/access/relations/redis/check.ts'
import { measureRounds } from '../measure/rounds.ts'
import { median } from '../measure/statistics.ts'
import { connectDirectly, fillSizes, fillSlow } from '../relations/direct-redis.ts'
import { type MeasuredWay, resultOf } from '../relations/figures.ts'
import { SIZES } from '../relations/graph.ts'
import { measureAllChecks, measureSlow, teachScript } from '../relations/measure-checks.ts'
import {
  CONNECTIONS,
  type Course,
  measureCourses,
  mintCallers,
  questionsOf,
  WAY_IDS,
  WAYS,
  type WayId,
  wayContestant,
} from '../relations/measure-gateway.ts'
import { SLOW_GRAPHS, SLOW_MODEL } from '../relations/slow-graphs.ts'
import type { Scenario } from '../scenario.ts'
import { startVariants } from '../stack/gateway.ts'

const EFFORTS = {
  quick: {
    sizes: SIZES.slice(0, 3),
    checkRounds: 20,
    checksEach: 100,
    rounds: 1,
    seconds: 0.6,
    slowTimes: 5,
    offer: { ratePerSecond: 300, seconds: 4 },
  },
  full: {
    sizes: SIZES,
    checkRounds: 100,
    checksEach: 200,
    rounds: 7,
    seconds: 3,
    slowTimes: 20,
    offer: { ratePerSecond: 420, seconds: 45 },
  },
} as const
const WARM_UP_SECONDS = 0.5
/** The size of the closed loads. */
const USUAL_SIZE = 100_000

export const relations: Scenario = {
  id: 'relations',
  title: 'Relations over five levels',
  measures:
    'Checks whether callers are viewers of orders through project, team, department and ' +
    'organisation, over 1,000 to 1,000,000 tuples: in Redis alone, and through the whole gateway, ' +
    'decided each time and cached, compared with the same route without a relation. Then slow graphs.',
  answers: ['subzero-permissions'],
  asserts: [
    'Every decision is the one that the tuples imply; on slow graphs it may be `unknown`.',
    'Callers with the relation reach the origin. Callers without it are refused and do not.',
    'A request makes one call to Redis; with leased units at most one in ten does.',
  ],
  runtimes: ['workerd'],
  seconds: { quick: 0, full: 220 },

  async run(context) {
    const effort = EFFORTS[context.effort]
    const { sizes, rounds, seconds } = effort
    const { onProgress } = context
    const variants = new Set(WAY_IDS.map((id) => WAYS[id].variant))
    const gateway = await startVariants(context, [...variants])
    const { kind, directUrl } = gateway.backends.redis
    if (kind !== 'server')
      throw new Error('needs its own redis-server, because it fills the memory: unset REDIS_URL')
    const redis = await connectDirectly(directUrl)
    context.shutdown.defer(async () => redis.close())
    const filled = await fillSizes(redis, sizes, onProgress)

    const check = createRelationCheck(shippedModel())
    await teachScript(redis, check)
    onProgress('checks in Redis alone')
    const { checks, slowestMicros } = await measureAllChecks(redis, check, effort)

    const callers = await mintCallers(gateway, sizes)
    const scripts = new Map<WayId, number[]>(WAY_IDS.map((id) => [id, []]))
    const contestants = WAY_IDS.map((id) =>
      wayContestant(gateway, redis, id, {
        scripts: scripts.get(id) ?? [],
        questionsIn: (round) => questionsOf(callers, WAYS[id], { size: USUAL_SIZE, round }),
      }),
    )
    const summaries = await measureRounds(contestants, {
      rounds,
      seconds,
      backends: gateway.backends,
      onProgress,
      warmUpSeconds: WARM_UP_SECONDS,
      pace: { connections: CONNECTIONS, mayShed: true },
    })
    const ways = Object.fromEntries(
      summaries.map((summary): [string, MeasuredWay] => [
        summary.id,
        { ...summary, scripts: median(scripts.get(summary.id as WayId) ?? []) },
      ]),
    ) as Record<WayId, MeasuredWay>
    const courses: readonly Course[] = [
      ...(['unrelated', 'cached'] as const).map((way) => ({ way, size: USUAL_SIZE })),
      ...sizes.map((size) => ({ way: 'cold' as const, size })),
    ]
    onProgress(`all in turn at ${effort.offer.ratePerSecond}/s, request by request`)
    const paced = await measureCourses(gateway, callers, courses, effort.offer)
    onProgress('slow graphs')
    const slowCheck = createRelationCheck(compileModel(SLOW_MODEL))
    await fillSlow(redis, SLOW_GRAPHS)
    const slow = []
    for (const graph of SLOW_GRAPHS)
      slow.push({ graph, round: await measureSlow(redis, slowCheck, graph, effort.slowTimes) })
    redis.close()
    await gateway.close()
    const usual = USUAL_SIZE
    return resultOf({ filled, checks, ways, courses, paced, slow, usual, slowestMicros })
  },
}

/** Returns the shipped model, which `npm run model` generates from `portcullis.fga`. */
function shippedModel() {
  return compileModel(JSON.parse(readFileSync(join(ROOT, 'portcullis.model.json'), 'utf8')))
}
