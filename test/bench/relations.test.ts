import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { offer } from '../../bench/load/open.ts'
import { type PacedSample, summaryOf } from '../../bench/measure/rounds.ts'
import {
  connectDirectly,
  type DirectRedis,
  fillSizes,
  fillSlow,
  loadTuples,
  longestScript,
  parseUsage,
} from '../../bench/relations/direct-redis.ts'
import type { Found } from '../../bench/relations/figures.ts'
import { resultOf } from '../../bench/relations/figures.ts'
import {
  CALLERS,
  callerName,
  organisationsIn,
  pairsOf,
  RELATION,
  SIZES,
  TUPLES_OF_ORGANISATION,
  tenantOf,
  tuplesOf,
} from '../../bench/relations/graph.ts'
import { measureChecks, measureSlow, teachScript } from '../../bench/relations/measure-checks.ts'
import {
  questionsOf,
  refuseOtherScripts,
  type WAY_IDS,
  WAYS,
} from '../../bench/relations/measure-gateway.ts'
import { SLOW_GRAPHS, SLOW_MODEL, SLOW_OBJECT } from '../../bench/relations/slow-graphs.ts'
import { roomy } from '../../bench/workers/policy.ts'
import { relatedPolicy } from '../../bench/workers/relations-policy.ts'
import { type RedisHandle, startRedis } from '../../dev/redis.ts'
import shipped from '../../portcullis.config.ts'
import { compileModel } from '../../src/access/relations/compile-model.ts'
import { mistakeOfTuple } from '../../src/access/relations/permitted.ts'
import { createRelationCheck, RELATION_LIMITS } from '../../src/access/relations/redis/check.ts'
import { createRelationTuples } from '../../src/access/relations/redis/tuples.ts'
import { formatTuple, type RelationTuple } from '../../src/access/relations/tuple.ts'
import { decide } from '../relations/oracle.ts'
import { sampleOf } from './sample.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const model = compileModel(JSON.parse(readFileSync(join(ROOT, 'portcullis.model.json'), 'utf8')))
const slowModel = compileModel(SLOW_MODEL)
const LEAST = SIZES[0]

function allOf(size: number): readonly RelationTuple[] {
  return Array.from({ length: organisationsIn(size) }, (_, number) => [...tuplesOf(number)]).flat()
}

describe('the tuples of a size', () => {
  test('have the stated number, are distinct, and fit the model', () => {
    const tuples = allOf(LEAST)
    expect([...tuplesOf(0)]).toHaveLength(TUPLES_OF_ORGANISATION)
    expect(new Set(tuples.map(formatTuple)).size).toBe(LEAST)
    for (const tuple of tuples)
      expect(mistakeOfTuple(model, tuple), formatTuple(tuple)).toBeUndefined()
    for (const size of SIZES) expect(Number.isInteger(organisationsIn(size))).toBe(true)
  })

  test('an order is five levels below its organisation', () => {
    const tuples = allOf(LEAST)
    const levels = ['order:3-17']
    for (let level = 0; level < 4; level++) {
      const above = tuples.find(
        ({ object, subject }) => object === levels.at(-1) && !subject.startsWith('user:'),
      )
      levels.push(above?.subject ?? '')
    }
    expect(levels.map((object) => object.split(':')[0])).toEqual([
      ...['order', 'project', 'team', 'department', 'organisation'],
    ])
  })

  test('no pair repeats before every order was used', () => {
    const orders = pairsOf(LEAST, 'allowed', 360).map(({ order }) => order)
    expect(new Set(orders).size).toBe(360)
    expect(pairsOf(LEAST, 'denied', 10, 350)).toEqual(pairsOf(LEAST, 'denied', 360).slice(350))
  })

  test.each(['allowed', 'denied'] as const)('the model decides %s for these pairs', (answer) => {
    const tuples = allOf(LEAST)
    for (const { caller, order } of pairsOf(LEAST, answer, 60, 7)) {
      const { decision } = decide(model, tuples, {
        tenant: null,
        object: `order:${order}`,
        relation: RELATION,
        subject: `user:${callerName(caller)}`,
        contextualTuples: [],
      })
      expect(decision.outcome).toBe(answer)
    }
  })
})

describe('the slow graphs', () => {
  test('fit their model and have the stated size', () => {
    const counts = SLOW_GRAPHS.map(({ id, tuples }) => {
      const all = [...tuples()]
      expect(
        all.filter((tuple) => mistakeOfTuple(slowModel, tuple)),
        id,
      ).toEqual([])
      expect(new Set(all.map(formatTuple)).size, id).toBe(all.length)
      return [id, all.filter(({ subject }) => subject.includes('#')).length]
    })
    expect(Object.fromEntries(counts)).toEqual({
      'slow-nested': 25,
      'slow-deeper': 26,
      'slow-tree': 10_000,
      'slow-wide': 10_000,
      'slow-folders': 0,
      'slow-dense': 200 * 199 + 1,
    })
  })

  test('only the last member is a viewer', () => {
    const reached = (tuples: readonly RelationTuple[]) => {
      const found = new Set<string>()
      const walk = (at: string) => {
        for (const { object, subject } of tuples) {
          if (object !== at || found.has(subject)) continue
          found.add(subject)
          if (subject.includes('#')) walk(subject.slice(0, subject.indexOf('#')))
        }
      }
      walk(SLOW_OBJECT)
      return found
    }
    const [nested] = SLOW_GRAPHS
    const found = reached([...(nested?.tuples() ?? [])])
    for (const { subject, isViewer } of nested?.questions ?? [])
      expect(found.has(subject), subject).toBe(isViewer)
  })
})

describe('over a real Redis', () => {
  let handle: RedisHandle
  let redis: DirectRedis
  const check = createRelationCheck(model)

  beforeAll(async () => {
    handle = await startRedis({ prefer: 'server' })
    redis = await connectDirectly(handle.url)
    await teachScript(redis, check)
  })
  afterAll(async () => {
    redis.close()
    await handle.close()
  })

  test('the store has the written tuples, and every check is correct', async () => {
    const [filled] = await fillSizes(redis, [LEAST], () => {})
    expect(filled).toMatchObject({ size: LEAST })
    expect(filled?.bytes).toBeGreaterThan(0)
    for (const answer of ['allowed', 'denied'] as const) {
      const round = await measureChecks(redis, check, { size: LEAST, answer, count: 50, from: 0 })
      expect(round.checks).toBe(50)
      // At least one command for each of five levels.
      expect(round.commands).toBeGreaterThan(5)
      expect(round.micros).toBeGreaterThan(0)
    }
    const store = createRelationTuples(redis, model.types.keys())
    const read: string[] = []
    let after: RelationTuple | undefined
    for (let hasMore = true; hasMore; ) {
      const page = await store.read(tenantOf(LEAST), { limit: 100, after })
      read.push(...page.tuples.map(formatTuple))
      after = page.tuples.at(-1)
      hasMore = page.hasMore
    }
    expect(read.toSorted()).toEqual(allOf(LEAST).map(formatTuple).toSorted())
  })

  test('a missing tuple and a duplicate tuple are found', async () => {
    const store = createRelationTuples(redis, model.types.keys())
    const tenant = tenantOf(LEAST)
    const removed = { object: 'project:0-0', relation: 'team', subject: 'team:0-0' }
    await store.write(tenant, { writes: [], deletes: [removed] })
    const asked = { size: LEAST, answer: 'allowed', count: 20, from: 0 } as const
    await expect(measureChecks(redis, check, asked)).rejects.toThrow('denied, not allowed')
    expect(await loadTuples(store, tenant, [removed])).toBe(1)
    await expect(loadTuples(store, tenant, [removed])).rejects.toThrow('of which 0 were written')
    await measureChecks(redis, check, asked)
  })

  test('a slow graph is decided or unknown, within the work limit', async () => {
    await fillSlow(redis, SLOW_GRAPHS)
    const slowCheck = createRelationCheck(slowModel)
    for (const graph of SLOW_GRAPHS) {
      const round = await measureSlow(redis, slowCheck, graph, 1)
      expect(round.checks, graph.id).toBe(graph.questions.length)
      expect(round.mostWork, graph.id).toBeLessThanOrEqual(2 * RELATION_LIMITS.maxWork)
      expect(round.slowestMicros, graph.id).toBeGreaterThan(0)
      if (graph.id === 'slow-nested') expect(round.answered).toBeGreaterThan(0)
      if (graph.id === 'slow-deeper') expect(round.unknown).toContain('max_depth_exceeded')
    }
  })
})

describe('statistics of Redis', () => {
  test('scripts and their commands are counted separately', () => {
    const text = [
      'used_cpu_sys_main_thread:0.250000',
      'used_cpu_user_main_thread:1.5',
      'used_cpu_user:9',
      'cmdstat_evalsha:calls=3,usec=100,usec_per_call=33.3',
      'cmdstat_eval:calls=1,usec=50,usec_per_call=50',
      'cmdstat_zscore:calls=20,usec=7,usec_per_call=0.3',
      'cmdstat_config|set:calls=1,usec=7,usec_per_call=7',
    ].join('\r\n')
    expect(parseUsage(text)).toEqual({ calls: 4, micros: 150, commands: 21, cpuMicros: 1_750_000 })
  })

  test('the longest script, and no other command', () => {
    const entry = (micros: number, name: string) => [1, 1, micros, [name, 'x']] as const
    expect(longestScript([entry(9, 'ZADD')])).toBeUndefined()
    expect(longestScript([entry(9, 'ZADD'), entry(3, 'EVALSHA'), entry(5, 'eval')])).toBe(5)
  })
})

describe('requests to the gateway', () => {
  const tokens = Array.from({ length: CALLERS }, (_, caller) => `t${caller}`)
  const callers = new Map([[tenantOf(100_000), tokens]])
  const asked = (way: (typeof WAY_IDS)[number], round: number) =>
    questionsOf(callers, WAYS[way], { size: 100_000, round })

  test('each round has its own pairs, except for cached decisions', () => {
    const pathsOf = (way: (typeof WAY_IDS)[number], round: number) =>
      new Set(asked(way, round).map(({ path }) => path))
    expect(pathsOf('cold', 1).size).toBe(10_000)
    expect(new Set([...pathsOf('cold', 1), ...pathsOf('cold', 2)]).size).toBe(20_000)
    expect(pathsOf('cached', 1)).toEqual(pathsOf('cached', 2))
    expect(new Set(asked('leased', 1).map(({ headers }) => headers.authorization)).size).toBe(5)
  })

  test('the origin answers callers with the relation, the gateway the others', () => {
    expect(asked('cold', 0)[0]).toMatchObject({ status: 200, path: '/related/0-0' })
    expect(asked('unrelated', 0)[0]).toMatchObject({ status: 200, path: '/unrelated/0-0' })
    expect(asked('denied', 0)[0]).toMatchObject({
      status: 403,
      answer: { holds: '"code":"insufficient_permission"' },
    })
  })

  test('the two routes differ only in the relation', () => {
    const { routes, relations } = relatedPolicy(roomy(shipped, '/x'), '/x')
    const [unrelated, related] = ['/x/unrelated/:id', '/x/related/:id'].map((path) =>
      routes.find((route) => route.path === path),
    )
    expect(related?.relation?.name).toBe('order#viewer')
    expect(unrelated?.relation).toBeUndefined()
    const { relation: _, ...others } = related ?? {}
    expect({ ...others, path: '' }).toEqual({ ...unrelated, path: '', relation: undefined })
    expect(relations?.maxStalenessMs).toBe(0)
    expect(relations?.authority).toBe('redis')
  })

  test('a missing or unexpected check is found', () => {
    expect(() => refuseOtherScripts(WAYS.cold, 2)).not.toThrow()
    expect(() => refuseOtherScripts(WAYS.cold, 1)).toThrow('1 scripts in a call to Redis, not 2')
    expect(() => refuseOtherScripts(WAYS.cached, 1.05)).not.toThrow()
    expect(() => refuseOtherScripts(WAYS.cached, 2)).toThrow('not 1')
    expect(() => refuseOtherScripts(WAYS.leased, 0)).not.toThrow()
  })

  test('an open load uses the path of each request', async () => {
    const seen = new Set<string>()
    const server = createServer(({ url }, response) => {
      seen.add(url ?? '')
      response.end('yes')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const question = { method: 'GET', headers: {}, status: 200, answer: 'yes' } as const
    const { right } = await offer({
      url: `http://127.0.0.1:${port}/some`,
      questions: ['/a', '/b', ''].map((path) => ({ ...question, path })),
      ratePerSecond: 100,
      seconds: 0.1,
    })
    server.closeAllConnections()
    server.close()
    expect(right).toBe(10)
    expect(seen).toEqual(new Set(['/some/a', '/some/b', '/some']))
  })
})

describe('the result', () => {
  const sample = (cpuMicros: number) => sampleOf({ cpuMicros })
  const wayOf = (id: string, cpuMicros = 500) => ({
    ...summaryOf({ id, title: id }, [sample(cpuMicros)]),
    scripts: 1,
  })
  const pacedOf = (ms: number): PacedSample => ({
    requests: 100,
    meanMs: ms,
    p50Ms: ms,
    p95Ms: ms,
    p99Ms: ms,
    lateP50Ms: 0,
  })
  const checkOf = (micros: number) => [{ checks: 100, micros, cpuMicros: micros, commands: 16 }]
  const [graph] = SLOW_GRAPHS
  const found: Found = {
    filled: [1_000, 100_000].map((size) => ({ size, bytes: 300, perSecond: 50_000 })),
    usual: 100_000,
    checks: {
      'allowed-1000': checkOf(50),
      'allowed-100000': checkOf(55),
      'denied-1000': checkOf(40),
      'denied-100000': checkOf(60),
    },
    ways: {
      unrelated: wayOf('unrelated'),
      cold: wayOf('cold', 600),
      denied: wayOf('denied'),
      cached: wayOf('cached'),
      leased: wayOf('leased'),
    },
    courses: [
      ...(['unrelated', 'cached', 'cold'] as const).map((way) => ({ way, size: 100_000 })),
      { way: 'cold', size: 1_000 },
    ],
    paced: { samples: [1, 1.1, 1.5, 1.2].map(pacedOf), right: 400, shed: 0, calls: 1 },
    slowestMicros: 400,
    slow:
      graph === undefined
        ? []
        : [
            {
              graph,
              round: {
                checks: 21,
                answered: 21,
                unknown: [],
                micros: 90,
                cpuMicros: 80,
                slowestMicros: 5_100,
                mostWork: 76,
              },
            },
          ],
  }

  test('figures are ratios within one run, with unique ids', () => {
    const { figures, tables } = resultOf(found)
    const figureOf = (id: string) => figures.find((figure) => figure.id === id)?.value
    expect(new Set(figures.map(({ id }) => id)).size).toBe(figures.length)
    expect(figureOf('cold-p50')).toBe(1.5)
    expect(figureOf('cold-adds')).toBe(0.5)
    expect(figureOf('cold-cpu')).toBe(1.2)
    expect(figureOf('growth-allowed')).toBe(1.1)
    expect(figureOf('growth-denied')).toBe(1.5)
    expect(figureOf('growth-p50')).toBe(1.25)
    expect(figureOf('slowest')).toBe(5.1)
    for (const { headings, rows } of tables ?? [])
      for (const row of rows) expect(row).toHaveLength(headings.length)
  })

  test('a missing measurement is an error', () => {
    expect(() => resultOf({ ...found, courses: [] })).toThrow('was not measured')
  })
})
