import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { startUpstashRest, type UpstashRest } from '../../dev/upstash-rest/server.ts'
import { createFailureCounter } from '../../src/access/abuse/redis/authentication-failures.ts'
import { createViolationCounter } from '../../src/access/abuse/redis/violations.ts'
import { createAdmission } from '../../src/access/admission/admission.ts'
import { createRedisAdmissionStore } from '../../src/access/admission/redis/store.ts'
import { upstash } from '../../src/features/upstash/index.ts'
import { composeServices } from '../../src/gateway/compose-services.ts'
import { createGateway } from '../../src/gateway/create-gateway.ts'
import { WORKERS } from '../../src/gateway/runtime.ts'
import { definePolicy } from '../../src/policy/policy.ts'
import type { RedisCommand, RedisConnection } from '../../src/redis/connection.ts'
import { createRedisRest } from '../../src/redis/rest.ts'
import { KEY_LOCKING } from '../../src/redis/script.ts'
import { limitOf, principal } from '../access/admission/callers.ts'
import { startHttpServer } from '../harness/http-server.ts'
import { redisVars, startTestRedis, type TestRedis } from '../harness/redis.ts'

const TOKEN = 'test-token'
const ADDRESSES = ['192.0.2.1', '192.0.2.2'] as const

let redis: TestRedis
/** Removes Upstash's flag, as Upstash parses it. */
let taking: UpstashRest
beforeAll(async () => {
  redis = await startTestRedis()
  taking = await startUpstashRest({ port: 0, token: TOKEN, redis: { url: redis.redisUrl } })
})
afterAll(async () => {
  await taking.close()
  await redis.close()
})
beforeEach(async () => {
  await redis.direct.flushall()
  await redis.direct.script('FLUSH')
})

/** A client of a server that records each call. */
function clientOf(url: string) {
  const calls: (readonly RedisCommand[])[] = []
  const rest = createRedisRest({ url, token: TOKEN, timeoutMs: 5_000 })
  const recording: RedisConnection = {
    ...rest,
    send(commands, options) {
      calls.push(commands)
      return rest.send(commands, options)
    },
  }
  return { rest: recording, calls }
}

/** A separate server, so that no test has used it before. */

const strangers: UpstashRest[] = []
afterAll(() => Promise.all(strangers.map((server) => server.close())))
async function refusingServer(): Promise<string> {
  const redisUrl = { url: redis.redisUrl }
  const server = await startUpstashRest({
    port: 0,
    token: TOKEN,
    redis: redisUrl,
    keepsScriptFlags: true,
  })
  strangers.push(server)
  return server.url
}

function gatewayOver(rest: RedisConnection, maxStalenessMs = 0) {
  let nowMs = 1e12
  const store = createRedisAdmissionStore(rest)
  const admission = createAdmission({ store, now: () => nowMs, maxStalenessMs })
  return {
    admit: admission.admit,
    pass(ms: number) {
      nowMs += ms
    },
  }
}

describe('a Redis that refuses the flag of Upstash', () => {
  test('refuses each script that has the flag, and runs nothing', async () => {
    const script = `${KEY_LOCKING}return redis.call('INCR', KEYS[1])`
    await expect(redis.direct.eval(script, 1, 'count')).rejects.toThrow(/flag|compiling/)
    expect(await redis.direct.exists('count')).toBe(0)
  })

  test('is detected once by an isolate, which then needs one call per request', async () => {
    const url = await refusingServer()
    const { rest, calls } = clientOf(url)
    const { admit } = gatewayOver(rest)
    const limit = limitOf({ limit: 50 })
    const admitOne = () => admit({ principal: principal(), address: ADDRESSES[0], limits: [limit] })
    for (let n = 1; n <= 3; n++) {
      expect((await admitOne()).limits).toMatchObject([{ remaining: 50 - n }])
      // By digest; then the text with the flag, which is refused; then the text without it.
      expect(calls.length).toBe(n + 2)
    }
    await redis.direct.script('FLUSH')
    expect((await admitOne()).limits).toMatchObject([{ remaining: 46 }])
    expect(calls.length).toBe(7)

    // Another script and another client of the isolate do not try the flag again.
    const other = clientOf(url)
    await createFailureCounter(other.rest).count(ADDRESSES[0], 60)
    await createFailureCounter(other.rest).count(ADDRESSES[0], 60)
    expect(other.calls.map((commands) => commands.map(([name]) => name))).toEqual([
      ['EVALSHA'],
      ['EVAL'],
      ['EVALSHA'],
    ])
  })

  test('counts each of fifty simultaneous first requests exactly once', async () => {
    const { rest } = clientOf(await refusingServer())
    const { admit } = gatewayOver(rest)
    const limit = limitOf({ limit: 20 })
    const verdicts = await Promise.all(
      Array.from({ length: 50 }, () =>
        admit({ principal: principal(), address: ADDRESSES[0], limits: [limit] }),
      ),
    )
    expect(verdicts.filter(({ denial }) => denial === undefined)).toHaveLength(20)
  })

  test('counts limits of the upstash engine as well, with the same calls', async () => {
    const { rest, calls } = clientOf(await refusingServer())
    const { admit } = gatewayOver(rest)
    const limit = limitOf({ limit: 50, engine: upstash() })
    const remaining: (number | undefined)[] = []
    for (let n = 0; n < 4; n++) {
      const request = { principal: principal(), address: ADDRESSES[0], limits: [limit] }
      remaining.push((await admit(request)).limits[0]?.remaining)
    }
    expect(remaining).toEqual([49, 48, 47, 46])
    const before = calls.length
    await admit({ principal: principal(), address: ADDRESSES[0], limits: [limit] })
    expect(calls.length - before).toBe(1)
  })

  test('serves requests through a complete gateway', async () => {
    let reached = 0
    const origin = await startHttpServer((_, response) => {
      reached += 1
      response.end('here')
    })
    const policy = definePolicy({
      roles: {},
      limits: { few: { limit: 2, windowSeconds: 60, by: 'address', onUnavailable: 'deny' } },
      routes: [{ method: 'GET', path: '/', anonymous: true, limits: ['few'] }],
    })
    const env = {
      ...redisVars({ url: await refusingServer(), token: TOKEN }),
      PUBLIC_URL: 'https://gateway.test',
      ORIGIN_URL: origin.url,
    }
    const gateway = createGateway(composeServices(env, policy, WORKERS), policy)
    const statuses: number[] = []
    for (let n = 0; n < 3; n++) {
      const headers = { 'CF-Connecting-IP': ADDRESSES[0] }
      const request = new Request('https://gateway.test/', { headers })
      statuses.push((await gateway.fetch(request)).status)
    }
    await origin.close()
    expect(statuses).toEqual([200, 200, 429])
    expect(reached).toBe(2)
  })

  test('reads the revocation feed as well', async () => {
    const { rest, calls } = clientOf(await refusingServer())
    const { admit } = gatewayOver(rest, 1_000)
    const request = { principal: principal(), address: ADDRESSES[0], limits: [] }
    for (let n = 0; n < 3; n++) expect((await admit(request)).denial).toBeUndefined()
    const before = calls.length
    expect((await admit(request)).denial).toBeUndefined()
    expect(calls.length).toBe(before)
  })
})

describe('a server that accepts the flag', () => {
  test('gets each script of a request with it, in one call per request', async () => {
    const { rest, calls } = clientOf(taking.url)
    const { admit } = gatewayOver(rest)
    const limits = [limitOf({ limit: 50 }), limitOf({ limit: 50, engine: upstash() })]
    for (let n = 0; n < 3; n++)
      await admit({ principal: principal(), address: ADDRESSES[0], limits })
    const texts = calls.flat().flatMap(([name, , text]) => (name === 'SCRIPT' ? [text] : []))
    expect(texts).toHaveLength(2)
    for (const text of texts) expect(String(text)).toMatch(/^#!lua flags=allow-key-locking\n/)
    expect(calls.flat().some(([name]) => name === 'EVAL')).toBe(false)
    const before = calls.length
    await admit({ principal: principal(), address: ADDRESSES[0], limits })
    expect(calls.length - before).toBe(1)
  })

  test('may refuse every undeclared key: no such key is used', async () => {
    const { rest, calls } = clientOf(taking.url)
    const { admit, pass } = gatewayOver(rest, 1_000)
    const limits = [
      limitOf({ limit: 3, lease: { max: 2, ttlMs: 500 } }),
      limitOf({ limit: 50, engine: upstash() }),
    ]
    // `monitor` returns another client.
    const client = new Redis(redis.redisUrl)
    const monitor = await client.monitor()
    onTestFinished(() => {
      for (const one of [monitor, client]) one.disconnect()
    })
    const touched: string[] = []
    const ended = Promise.withResolvers<void>()
    monitor.on('monitor', (_time, args: string[], source: string) => {
      if (source === 'lua') touched.push(...keysOf(args))
      if (args[1] === 'the end') ended.resolve()
    })
    for (let n = 0; n < 6; n++) {
      const request = { principal: principal(), address: ADDRESSES[0], limits }
      await (await admit(request)).renewal?.()
      pass(600)
    }
    const violations = createViolationCounter(rest, () => 1e12)
    const bans = { violations: 2, windowSeconds: 60, seconds: 60, maxSeconds: 60 }
    for (let n = 0; n < 3; n++) {
      await createFailureCounter(rest).count(ADDRESSES[0], 60)
      const offender = { kind: 'address', value: ADDRESSES[0] } as const
      await violations.count(offender, 'credential', {
        ...bans,
        mode: 'enforce',
        refuses: 'everything',
      })
    }
    await redis.direct.set('the end', '1')
    await ended.promise
    const declared = new Set(calls.flat().flatMap(declaredKeysOf))
    expect(touched.length).toBeGreaterThan(20)
    expect([...new Set(touched)].filter((key) => !declared.has(key))).toEqual([])
  })
})

describe('calls for two callers of different clients and tenants', () => {
  test('declare no common key once an isolate has read the feed', async () => {
    const { rest, calls } = clientOf(taking.url)
    const { admit } = gatewayOver(rest, 1_000)
    const keysOfCaller = async (subject: string, address: string) => {
      const before = calls.length
      const limits = [limitOf({ limit: 1_000, lease: { max: 100, ttlMs: 500 } })]
      const verdict = await admit({
        principal: principal({ subject, tokenId: subject, client: subject, tenant: subject }),
        address,
        limits,
      })
      expect(verdict.denial).toBeUndefined()
      await verdict.renewal?.()
      const keys = calls.slice(before).flat().flatMap(declaredKeysOf)
      expect(keys.length).toBeGreaterThan(4)
      return new Set(keys)
    }
    await keysOfCaller('first', '192.0.2.3')
    await keysOfCaller('first', '192.0.2.3')
    const [alice, bob] = [
      await keysOfCaller('alice', ADDRESSES[0]),
      await keysOfCaller('bob', ADDRESSES[1]),
    ]
    expect([...alice].filter((key) => bob.has(key))).toEqual([])
  })

  test('declare the feed in a separate command, never with a key of a caller', async () => {
    const { rest, calls } = clientOf(taking.url)
    const { admit, pass } = gatewayOver(rest, 1_000)
    const limits = [limitOf({ limit: 1_000, lease: { max: 100, ttlMs: 500 } })]
    for (let n = 0; n < 20; n++) {
      const verdict = await admit({ principal: principal(), address: ADDRESSES[0], limits })
      await verdict.renewal?.()
      pass(150)
    }
    const withFeed = calls
      .flat()
      .map(declaredKeysOf)
      .filter((keys) => keys.includes('pc:revocation-feed'))
    expect(withFeed.length).toBeGreaterThan(0)
    for (const keys of withFeed) expect(keys).toEqual(['pc:revocation-feed'])
  })
})

/** Returns the keys that a command declares. */
function declaredKeysOf([name, , count, ...rest]: RedisCommand): string[] {
  return name === 'EVALSHA' || name === 'EVAL' ? rest.slice(0, Number(count)).map(String) : []
}

/** Returns the keys of a command that a script executed. */
function keysOf([name = '', ...args]: readonly string[]): string[] {
  if (/^time$/i.test(name)) return []
  return /^(exists|mget|del)$/i.test(name) ? [...args] : args.slice(0, 1)
}
