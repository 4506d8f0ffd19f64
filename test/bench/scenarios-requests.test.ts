import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { ask, isRight, isShed, type Question } from '../../bench/requests/ask.ts'
import { createCaller } from '../../bench/requests/caller.ts'
import { createKeepAliveLoad } from '../../bench/requests/keep-alive-load.ts'
import { refuseOther } from '../../bench/requests/observe.ts'
import { startHoldingOrigin } from '../../bench/requests/odd-origin.ts'
import { CHECK_ROLES, PERMISSION_CHECKS } from '../../bench/requests/permission-checks.ts'
import { mixed, payloadOf, problem } from '../../bench/requests/questions.ts'
import { inTurn, ratioOf } from '../../bench/requests/rounds.ts'
import { prepareValidations, refuseOtherCount } from '../../bench/requests/validations.ts'
import { EXEMPT_ADDRESS } from '../../bench/requests/variants.ts'
import { requestsPolicy } from '../../bench/workers/requests-policy.ts'
import shipped from '../../portcullis.config.ts'
import { createAuthorizer, type Principal } from '../../src/index.ts'

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
  test('asks each question once, below its path, where it is told to', async () => {
    const seen: string[] = []
    const url = await serve(({ url: path }, response) => {
      seen.push(path ?? '')
      response.end('yes')
    })
    const questions = ['/a', '/b', '/c', '/d'].map((path) => ({ ...good, path }))
    const { right } = await ask({ url, questions, connections: 2, until: 'once' })
    expect(right).toBe(4)
    expect(seen.toSorted()).toEqual(['/some/a', '/some/b', '/some/c', '/some/d'])
  })

  test('takes a refusal that is expected, and nothing in its place', async () => {
    const url = await serve((_request, response) => {
      response.writeHead(401).end('{"code":"missing_token"}')
    })
    const expected = problem('missing_token', 401, {})
    const load = { url, connections: 1, until: 'once' } as const
    expect((await ask({ ...load, questions: [expected] })).right).toBe(1)
    const other = problem('invalid_token', 401, {})
    await expect(ask({ ...load, questions: [other] })).rejects.toThrow('1 wrong, the first: 401')
    await expect(ask({ ...load, questions: [good] })).rejects.toThrow('1 wrong')
  })

  test('one wrong body among many is found', async () => {
    let count = 0
    const url = await serve((_request, response) => response.end(++count === 17 ? 'no' : 'yes'))
    const questions = Array.from({ length: 40 }, () => good)
    await expect(ask({ url, questions, connections: 4, until: 'once' })).rejects.toThrow(
      '1 wrong, the first: 200 no',
    )
  })

  test('load that is shed is counted apart where that is allowed, and wrong where not', async () => {
    let count = 0
    const url = await serve((_request, response) => {
      if (++count % 4 !== 0) return response.end('yes')
      return response.writeHead(503).end('{"code":"overloaded"}')
    })
    const load = { url, connections: 1, until: 'once' } as const
    const questions = Array.from({ length: 8 }, () => good)
    const answers = await ask({ ...load, questions, mayShed: true })
    expect([answers.right, answers.shed, answers.latencies.count]).toEqual([6, 2, 6])
    await expect(ask({ ...load, questions })).rejects.toThrow('2 with status 503')
  })

  test('503 of anything but the gateway’s own refusals is wrong', () => {
    expect(isShed(503, '{"code":"dependency_unavailable"}')).toBe(true)
    expect(isShed(503, 'Service Unavailable')).toBe(false)
    expect(isShed(502, '{"code":"overloaded"}')).toBe(false)
    expect(isRight(good, 201, 'yes')).toBe(false)
  })
})

describe('counts at the origin and in Redis', () => {
  const counts = { requests: 100, identified: 100, asserted: 100, auditEvents: 0, calls: 100 }
  const asking = { url: 'http://127.0.0.1/gateway', connections: 1 }
  const let_through = { origin: 1, redis: 1 } as const

  test('are right for what was let through with one call each', () => {
    expect(() => refuseOther(100, counts, let_through, asking)).not.toThrow()
  })

  test.each([
    ['an answer that did not come from the origin', { ...counts, requests: 99 }],
    ['requests that were repeated', { ...counts, requests: 110, identified: 110, asserted: 110 }],
    ['a caller who was not told', { ...counts, identified: 99 }],
    ['an assertion that is missing', { ...counts, asserted: 99 }],
    ['a second call to Redis', { ...counts, calls: 200 }],
    ['no call to Redis', { ...counts, calls: 0 }],
  ])('%s is noticed', (_what, other) => {
    expect(() => refuseOther(100, other, let_through, asking)).toThrow('/gateway')
  })

  test('a refused request that reached the origin is noticed', () => {
    const refused = { ...counts, requests: 0, identified: 0, asserted: 0, calls: 0 }
    const nothing = { origin: 0, redis: 0 } as const
    expect(() => refuseOther(100, refused, nothing, asking)).not.toThrow()
    const one = { ...refused, requests: 1, identified: 1, asserted: 1 }
    expect(() => refuseOther(100, one, nothing, asking)).toThrow('requests to the origin')
    const called = { ...refused, calls: 1 }
    expect(() => refuseOther(100, called, nothing, asking)).toThrow('calls to Redis')
  })
})

describe('what is asked', () => {
  test('mixed traffic: four reads and a write of each caller, one write in any five', () => {
    const callers = Array.from({ length: 250 }, (_, index) => `c${index}`)
    const questions = mixed(callers)
    const isWrite = questions.map(({ method }) => method === 'POST')
    for (let at = 0; at < questions.length; at += 5)
      expect(isWrite.slice(at, at + 5).filter(Boolean)).toHaveLength(1)
    const counts = new Map<string, [number, number]>()
    for (const { headers, method } of questions) {
      const of = counts.get(headers.authorization ?? '') ?? [0, 0]
      of[method === 'POST' ? 1 : 0]++
      counts.set(headers.authorization ?? '', of)
    }
    expect(counts.size).toBe(250)
    for (const of of counts.values()) expect(of).toEqual([4, 1])
  })

  test('the payload is as long as it says, and the route takes it as it is', () => {
    const text = payloadOf(10_240)
    expect(Math.abs(text.length - 10_240)).toBeLessThan(250)
    const route = requestsPolicy(shipped, '').routes.find(({ path }) => path === '/payloads')
    expect(route?.input.body?.safeParse(JSON.parse(text)).success).toBe(true)
    const spoilt = JSON.parse(text.replace('"changed"', '"odd"'))
    expect(route?.input.body?.safeParse(spoilt).success).toBe(false)
  })

  test('validations: so many of five are remembered, and each new token is asked once', async () => {
    let minted = 0
    const mint = async (count: number) =>
      Array.from({ length: count }, () => {
        minted++
        return { credential: `t${minted}`, subject: `s${minted}`, tokenIdHash: '' }
      })
    const { known, of } = await prepareValidations({ mint }, 'ES256')
    const questions = await of('mixed', 500)
    const isKnown = (question: Question) => String(question.answer).endsWith('remembered')
    expect(questions.filter(isKnown)).toHaveLength(400)
    const fresh = questions.filter((question) => !isKnown(question))
    expect(new Set(fresh.map(({ headers }) => headers.authorization)).size).toBe(100)
    expect(known.some(isKnown)).toBe(false)
  })

  test('a memory that has counted otherwise is noticed', () => {
    expect(() => refuseOtherCount('mixed', 500, { hits: 400, misses: 100 })).not.toThrow()
    expect(() => refuseOtherCount('mixed', 500, { hits: 401, misses: 99 })).toThrow('401 hits')
    expect(() => refuseOtherCount('cached', 500, { hits: 499, misses: 1 })).toThrow('499 hits')
  })
})

describe('the Worker of the scenarios', () => {
  test('is bundled and runs with the settings that ship', () => {
    const settings = (path: string) =>
      readFileSync(join(ROOT, path), 'utf8').match(
        /^(?:compatibility_\w+|minify|keep_names) = .*$/gm,
      )
    expect(settings('bench/workers/requests.toml')).toEqual(settings('wrangler.toml'))
  })

  test('has the shipped routes, without their limits and with their demands', () => {
    const { routes, abuse } = requestsPolicy(shipped, '/gateway')
    for (const { method, path, permission } of shipped.routes) {
      const route = routes.find((one) => one.method === method && one.path === `/gateway${path}`)
      expect(route?.permission).toBe(permission)
      for (const { limit } of route?.limits ?? []) expect(limit).toBe(1_000_000_000)
    }
    const once = routes.find(({ path }) => path === '/gateway/once')
    expect(once?.limits.map(({ limit }) => limit)).toEqual([1])
    expect(abuse).toMatchObject({
      authenticationFailures: { limit: 20 },
      bans: { violations: 5 },
      exempt: ['127.0.0.0/8', `${EXEMPT_ADDRESS}/32`],
    })
  })

  test.each(PERMISSION_CHECKS)('permission check: $title', (check) => {
    const { roles, scopes, permission, allowed } = check
    const asker = { roles, scopes } as unknown as Principal
    expect(createAuthorizer(CHECK_ROLES)(asker, permission)).toBe(allowed)
  })
})

describe('rounds', () => {
  test('run in turn, and each is compared with the one beside it', async () => {
    const order: string[] = []
    const times = { base: [10, 20], other: [30, 40] }
    const rounds = await inTurn(['base', 'other'], 2, async (name, round) => {
      order.push(`${name} ${round}`)
      return { micros: times[name][round - 1] ?? 0 }
    })
    expect(order).toEqual(['base 1', 'other 1', 'base 2', 'other 2'])
    expect(ratioOf(rounds.other, rounds.base, 'micros')).toBe(2.5)
  })
})

describe('connections that stay open', () => {
  test('each gets its turn, and is opened once', async () => {
    const ports = new Map<number | undefined, number>()
    const url = await serve(({ socket }, response) => {
      ports.set(socket.remotePort, (ports.get(socket.remotePort) ?? 0) + 1)
      response.end('yes')
    })
    const load = createKeepAliveLoad(url, [good], 5)
    closers.push(load.close)
    const { offered, right } = await load.offer({ ratePerSecond: 100, seconds: 0.5 })
    expect(right).toBe(offered)
    expect([load.opened(), load.open(), ports.size]).toEqual([5, 5, 5])
    expect(Math.min(...ports.values())).toBe(offered / 5)
  })

  test('what nobody answers is counted, and what is answered wrong ends the load', async () => {
    const broken = createKeepAliveLoad(await serve((request) => request.destroy()), [good], 2)
    const failed = await broken.offer({ ratePerSecond: 50, seconds: 0.2 })
    expect(failed).toMatchObject({ right: 0, failed: failed.offered })
    const wrong = createKeepAliveLoad(await serve((_, response) => response.end('no')), [good], 2)
    closers.push(broken.close, wrong.close)
    await expect(wrong.offer({ ratePerSecond: 50, seconds: 0.2 })).rejects.toThrow('200 no')
  })
})

describe('an origin in the hands of a scenario', () => {
  test('holds answers until it is told, counts, and hangs up where it must', async () => {
    const origin = await startHoldingOrigin('body', '/broken')
    const caller = createCaller(2)
    closers.push(caller.close)
    const answer = caller.ask(origin.url, good)
    await expect(caller.ask(origin.url, { ...good, path: '/broken' })).rejects.toThrow()
    expect(await Promise.race([answer, 'held'])).toBe('held')
    while (origin.requests() < 2) await new Promise((resolve) => setTimeout(resolve, 5))
    origin.release()
    expect(await answer).toMatchObject({ status: 200, body: 'body' })
    expect(origin.connections()).toBe(2)
    await origin.close()
  })
})
