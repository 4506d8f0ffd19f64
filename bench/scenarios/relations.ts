/** What a check of relations over five levels costs, whatever the number of tuples. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../../dev/start/settings.ts'
import { compileModel } from '../../src/relations/compile-model.ts'
import { createRelationCheck } from '../../src/relations/redis/check.ts'
import { connectDirectly } from '../relations/direct-redis.ts'
import { fillSizes, fillSlow } from '../relations/fill.ts'
import { SIZES } from '../relations/graph.ts'
import { measureAllChecks, measureSlow, teachScript } from '../relations/measure-checks.ts'
import {
  type Course,
  measurePaced,
  measureWay,
  mintCallers,
  questionsOf,
  WAY_IDS,
  WAYS,
} from '../relations/measure-gateway.ts'
import { resultOf } from '../relations/result.ts'
import { SLOW_GRAPHS, SLOW_MODEL } from '../relations/slow-graphs.ts'
import { startRequestsGateway, warmUp } from '../requests/gateway.ts'
import { inTurn } from '../requests/rounds.ts'
import type { Scenario } from '../scenario.ts'

const EFFORTS = {
  quick: {
    sizes: SIZES.slice(0, 3),
    ...{ checkRounds: 20, checksEach: 100, rounds: 1, seconds: 0.6, slowTimes: 5 },
    offer: { ratePerSecond: 300, seconds: 4 },
  },
  full: {
    sizes: SIZES,
    ...{ checkRounds: 100, checksEach: 200, rounds: 5, seconds: 3, slowTimes: 20 },
    offer: { ratePerSecond: 420, seconds: 45 },
  },
} as const
/** What is measured closely. */
const USUAL_SIZE = 100_000

export const relations: Scenario = {
  id: 'relations',
  title: 'Relations over five levels',
  measures:
    'Whether callers are viewers of orders, by project, team, department and organisation, over 1,000 to ' +
    '1,000,000 tuples: in Redis alone, and through the whole gateway beside the same route without a ' +
    'relation, decided each time and out of what was decided before. Then graphs that are made to be slow.',
  answers: ['subzero-permissions'],
  asserts: [
    'Every decision is what the tuples were made to say; on slow graphs it may be `unknown`.',
    'Whoever has the relation reaches the origin, whoever has not is refused and does not.',
    'A request makes one call to Redis, and with units taken ahead at most one in ten does.',
  ],
  runtimes: ['workerd'],
  seconds: { quick: 0, full: 200 },

  async run(context) {
    const effort = EFFORTS[context.effort]
    const { sizes, rounds: count, seconds } = effort
    const variants = new Set(WAY_IDS.map((id) => WAYS[id].variant))
    const gateway = await startRequestsGateway(context, {
      isolates: Object.fromEntries([...variants].map((variant) => [variant, variant])),
    })
    const { kind, directUrl } = gateway.backends.redis
    if (kind !== 'server')
      throw new Error('needs a redis-server of its own, which it may fill: unset REDIS_URL')
    const redis = await connectDirectly(directUrl)
    context.shutdown.defer(async () => redis.close())
    const filled = await fillSizes(redis, sizes, context.onProgress)

    const check = createRelationCheck(shippedModel())
    await teachScript(redis, check)
    context.onProgress('checks in Redis alone')
    const { checks, slowestMicros } = await measureAllChecks(redis, check, effort)

    const callers = await mintCallers(gateway, sizes)
    for (const id of WAY_IDS) {
      context.onProgress(`warming up: ${WAYS[id].title}`)
      const questions = questionsOf(callers, WAYS[id], { size: USUAL_SIZE })
      await warmUp(gateway, { url: gateway.urlOf(WAYS[id].variant), questions })
    }
    const ways = await inTurn(WAY_IDS, count, (id, round) => {
      context.onProgress(`round ${round} of ${count}: ${WAYS[id].title}`)
      const questions = questionsOf(callers, WAYS[id], { size: USUAL_SIZE, round })
      return measureWay(gateway, redis, id, { questions, seconds })
    })
    const courses: readonly Course[] = [
      ...(['unrelated', 'cached'] as const).map((way) => ({ way, size: USUAL_SIZE })),
      ...sizes.map((size) => ({ way: 'cold' as const, size })),
    ]
    context.onProgress(`all in turn at ${effort.offer.ratePerSecond}/s, request by request`)
    const paced = await measurePaced(gateway, callers, courses, effort.offer)
    context.onProgress('slow graphs')
    const slowCheck = createRelationCheck(compileModel(SLOW_MODEL))
    await fillSlow(redis, SLOW_GRAPHS)
    const slow = []
    for (const graph of SLOW_GRAPHS)
      slow.push({ graph, round: await measureSlow(redis, slowCheck, graph, effort.slowTimes) })
    redis.close()
    await gateway.close()
    return resultOf({
      ...{ filled, checks, ways, courses, paced, slow },
      usual: USUAL_SIZE,
      slowestMicros,
    })
  },
}

/** The model that ships, as `npm run model` makes it of `portcullis.fga`. */
function shippedModel() {
  return compileModel(JSON.parse(readFileSync(join(ROOT, 'portcullis.model.json'), 'utf8')))
}
