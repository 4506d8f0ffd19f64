import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { sendClosed } from '../../bench/load/closed.ts'
import { isRight, isShed, problem, type Question } from '../../bench/load/questions.ts'
import { checkCounts, type Expected, inTurn } from '../../bench/measure/rounds.ts'
import { noiseNotes, ratioOf } from '../../bench/measure/statistics.ts'
import { parseStat } from '../../bench/processes/proc.ts'
import { table } from '../../bench/text.ts'
import { roomy } from '../../bench/workers/policy.ts'
import { EXEMPT_ADDRESS } from '../../bench/workers/variants.ts'
import shipped from '../../portcullis.config.ts'

const ROOT = join(import.meta.dirname, '..', '..')

const closers: (() => void)[] = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/some`
}

const good: Question = { method: 'GET', path: '/x', headers: {}, status: 200, answer: 'yes' }

describe('a load with expected answers', () => {
  test('sends each request once, below its path prefix', async () => {
    const seen: string[] = []
    const url = await serve(({ url: path }, response) => {
      seen.push(path ?? '')
      response.end('yes')
    })
    const questions = ['/a', '/b', '/c', '/d'].map((path) => ({ ...good, path }))
    const { right } = await sendClosed({ url, questions, connections: 2, until: 'once' })
    expect(right).toBe(4)
    expect(seen.toSorted()).toEqual(['/some/a', '/some/b', '/some/c', '/some/d'])
  })

  test('sends a number of requests, and none more', async () => {
    let seen = 0
    const url = await serve((_request, response) => {
      seen++
      response.end('yes')
    })
    const load = { url, questions: [good], connections: 2, until: { requests: 7 } }
    expect((await sendClosed(load)).right).toBe(7)
    expect(seen).toBe(7)
  })

  test('accepts an expected refusal, and no other response', async () => {
    const url = await serve((_request, response) => {
      response.writeHead(401).end('{"code":"missing_token"}')
    })
    const expected = problem('missing_token', 401, {})
    const load = { url, connections: 1, until: 'once' } as const
    expect((await sendClosed({ ...load, questions: [expected] })).right).toBe(1)
    const other = problem('invalid_token', 401, {})
    await expect(sendClosed({ ...load, questions: [other] })).rejects.toThrow(
      '1 wrong, the first: 401',
    )
    await expect(sendClosed({ ...load, questions: [good] })).rejects.toThrow('1 wrong')
  })

  test('a load that is shorter than its first response waits for it', async () => {
    const url = await serve((_request, response) => setTimeout(() => response.end('yes'), 300))
    const load = { url, questions: [good], connections: 1, until: { seconds: 0.1 } }
    expect((await sendClosed(load)).right).toBe(1)
  })

  test('one wrong body among many is found', async () => {
    let count = 0
    const url = await serve((_request, response) => response.end(++count === 17 ? 'no' : 'yes'))
    const questions = Array.from({ length: 40 }, () => good)
    await expect(sendClosed({ url, questions, connections: 4, until: 'once' })).rejects.toThrow(
      '1 wrong, the first: 200 no',
    )
  })

  test('shed load is counted separately if allowed, and wrong otherwise', async () => {
    let count = 0
    const url = await serve((_request, response) => {
      if (++count % 4 !== 0) return response.end('yes')
      return response.writeHead(503).end('{"code":"overloaded"}')
    })
    const load = { url, connections: 1, until: 'once' } as const
    const questions = Array.from({ length: 8 }, () => good)
    const answers = await sendClosed({ ...load, questions, mayShed: true })
    expect([answers.right, answers.shed, answers.latencies.count]).toEqual([6, 2, 6])
    await expect(sendClosed({ ...load, questions })).rejects.toThrow('2 with status 503')
  })

  test('503 without a refusal of the gateway is wrong', () => {
    expect(isShed(503, '{"code":"dependency_unavailable"}')).toBe(true)
    expect(isShed(503, 'Service Unavailable')).toBe(false)
    expect(isShed(502, '{"code":"overloaded"}')).toBe(false)
    expect(isRight(good, 201, 'yes')).toBe(false)
  })
})

describe('counts at the origin and in Redis', () => {
  const counts = { requests: 100, identified: 100, asserted: 100, auditEvents: 0, calls: 100 }
  const refuse = (answers: number, other: typeof counts, expected: Expected = admitted) =>
    checkCounts('gateway', { answers, aborted: 1, counts: other }, expected)
  const admitted = { origin: 1, redis: 1 } as const

  test('are right for admitted requests with one call each', () => {
    expect(() => refuse(100, counts)).not.toThrow()
  })

  test.each([
    ['a response without a request at the origin', { ...counts, requests: 99 }],
    ['repeated requests', { ...counts, requests: 110, identified: 110, asserted: 110 }],
    ['a missing identity', { ...counts, identified: 99 }],
    ['a missing assertion', { ...counts, asserted: 99 }],
    ['a second call to Redis', { ...counts, calls: 200 }],
    ['no call to Redis', { ...counts, calls: 0 }],
  ])('%s is found', (_what, other) => {
    expect(() => refuse(100, other)).toThrow('gateway: ')
  })

  test('a refused request at the origin is found', () => {
    const refused = { ...counts, requests: 0, identified: 0, asserted: 0, calls: 0 }
    const nothing = { origin: 0, redis: 0 } as const
    expect(() => refuse(100, refused, nothing)).not.toThrow()
    const one = { ...refused, requests: 1, identified: 1, asserted: 1 }
    expect(() => refuse(100, one, nothing)).toThrow('requests at the origin')
    const called = { ...refused, calls: 1 }
    expect(() => refuse(100, called, nothing)).toThrow('calls to Redis')
  })
})

describe('the Worker of the scenarios', () => {
  test('is bundled with the shipped settings', () => {
    const settings = (path: string) =>
      readFileSync(join(ROOT, path), 'utf8').match(
        /^(?:compatibility_\w+|minify|keep_names) = .*$/gm,
      )
    expect(settings('bench/workers/requests.toml')).toEqual(settings('wrangler.toml'))
  })

  test('has the shipped routes with their permissions, without their limits', () => {
    const { routes, abuse } = roomy(shipped, '/gateway')
    for (const { method, path, permission } of shipped.routes) {
      const route = routes.find((one) => one.method === method && one.path === `/gateway${path}`)
      expect(route?.permission).toBe(permission)
      for (const { limit } of route?.limits ?? []) expect(limit).toBe(1_000_000_000)
    }
    expect(abuse).toMatchObject({
      authenticationFailures: { limit: 20 },
      bans: { violations: 5 },
      exempt: [...shipped.abuse.exempt, `${EXEMPT_ADDRESS}/32`],
    })
  })
})

describe('rounds', () => {
  test('run in turn, and each is compared with the same round of the baseline', async () => {
    const order: string[] = []
    const times = { base: [10, 20], other: [30, 40] }
    const rounds = await inTurn(['base', 'other'] as const, 2, async (name, round) => {
      order.push(`${name} ${round}`)
      return { micros: times[name][round - 1] ?? 0 }
    })
    expect(order).toEqual(['base 1', 'other 1', 'base 2', 'other 2'])
    expect(ratioOf(rounds.get('other') ?? [], rounds.get('base') ?? [], 'micros')).toBe(2.5)
  })
})

test('a busy machine is noted', () => {
  expect(noiseNotes([{ otherCores: 0.9 }]).join()).toContain('0.9 cores')
  expect(noiseNotes([{ otherCores: 0 }])).toEqual([])
})

test('columns are aligned', () => {
  const rows = [
    ['a', '1'],
    ['long name', '100'],
  ]
  expect(table(['name', 'n'], rows)).toBe(
    ['name         n', '---------  ---', 'a            1', 'long name  100'].join('\n'),
  )
})

test('CPU times are parsed after a name with brackets and spaces, with those of ended children', () => {
  const stat = '42 (a (b) c) S 1 42 42 0 -1 4194304 900 0 3 0 150 25 7 8 20 0 6 0 100 1 2'
  expect(parseStat(stat, 100)).toEqual({ userMicros: 1_570_000, systemMicros: 330_000 })
})
