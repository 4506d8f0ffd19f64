/** One gateway, with every fault of Redis that the wire allows. */
import { createHash } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import { credentialHash, storedReference } from '../../src/access/tokens/reference.ts'
import { FIRST_PERIOD_MS, longestPeriodMs } from '../../src/isolate/circuit-breaker.ts'
import { DEFAULT_KEYS } from '../../src/redis/keys.ts'
import { recordOf } from '../access/admission/callers.ts'
import { fromAddress } from '../harness/address.ts'
import { forget, recordsOf } from '../harness/control.ts'
import { type FurtherGateway, startFurther } from '../harness/further-gateway.ts'
import { ISSUER, mint } from '../harness/issuer.ts'
import { NEVER } from '../harness/never.ts'
import { recovered } from '../harness/recovery.ts'
import { complaintsAbout } from '../harness/redis-dump.ts'
import {
  type Fault,
  type FaultyRest,
  hanging,
  hangingUp,
  saying,
  startFaultyRest,
} from '../rows/faulty-rest.ts'
import { ACCESS_TOKEN, createStackClient, EXCHANGE, postAs } from './oauth-clients.ts'

const stack = inject('stack')
/** Longer than a healthy Redis needs on a busy machine. An outage is detected after it. */
const DEADLINE_MS = 700
/** After an outage the breaker probes within its period, which is 5 s at most. */
const RECOVERY = { timeout: 20_000, interval: 200 }
const MEGABYTE = 1_048_576
const SECRETS =
  /redis|upstash|WRONGPASS|max requests|READONLY|LOADING|OOM|CLUSTERDOWN|html|oops|pipeline|EVALSHA|pc:/i

let rest: FaultyRest
let gateway: FurtherGateway
let url: string

beforeAll(async () => {
  rest = await startFaultyRest()
  const vars = {
    UPSTASH_REDIS_REST_URL: rest.url,
    REDIS_TIMEOUT_MS: String(DEADLINE_MS),
    UPSTASH_REDIS_REST_TOKEN: rest.redis.token,
  }
  gateway = await startFurther(stack, { vars })
  url = gateway.url
})
afterAll(async () => {
  await gateway?.stop()
  await rest?.close()
})
afterEach(async () => {
  rest.setFault(undefined)
  rest.setDelay(0)
  await recovered(stack, [url])
  rest.forget()
  await forget(stack.origin)
})

let addresses = 0
const newAddress = () => `10.77.${++addresses >> 8}.${addresses & 255}`
const get = (token: string) =>
  fetch(`${url}/orders`, {
    // A new address for each request, because failures are counted by address.
    headers: { authorization: `Bearer ${token}`, ...fromAddress(newAddress()) },
  })
const originCalls = async () => (await recordsOf(stack.origin)).length

async function statusOf(token: string): Promise<number> {
  const response = await get(token)
  await response.text()
  return response.status
}

/**
 * Ends the fault, waits until the gateway serves again, and clears the requests that the origin
 * recorded.
 */
async function mend(): Promise<void> {
  rest.setFault(undefined)
  await recovered(stack, [url])
  await forget(stack.origin)
}

const breakers = async () => {
  const response = await fetch(`${url}/-/readyz`)
  return ((await response.json()) as { breakers: Record<string, string> }).breakers
}

/** Returns a token and a function that revokes it everywhere. */
async function revocable() {
  const jti = crypto.randomUUID()
  const hash = createHash('sha256')
    .update(JSON.stringify([ISSUER, jti]))
    .digest('base64url')
  return {
    token: await mint(stack.inlineKey, { claims: { jti } }),
    revoke: () => rest.redis.direct.set(`pc:revoked:${hash}`, '1', 'EX', 600),
  }
}

async function expectOutage(token: string): Promise<void> {
  const response = await get(token)
  const text = await response.text()
  expect(response.status).toBe(503)
  expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(JSON.parse(text)).toMatchObject({ code: 'dependency_unavailable' })
  const said = JSON.stringify([...response.headers]) + text
  expect(said).not.toMatch(SECRETS)
  expect(said).not.toContain(rest.redis.token)
  expect(said.length).toBeLessThan(2_000)
}

describe('a slow Redis [R03]', () => {
  const REQUESTS = 40
  const AT_ONCE = 4

  test.each([50, 200])(
    '%i ms late, within the deadline: every request is decided, and the breaker stays closed [R03]',
    async (delayMs) => {
      const counts = { served: 0, refused: 0, other: 0 }
      const count = async (right: keyof typeof counts, expected: number, token: string) => {
        counts[(await statusOf(token)) === expected ? right : 'other'] += 1
      }
      rest.setDelay(delayMs)
      for (let sent = 0; sent < REQUESTS; sent += AT_ONCE) {
        // A new token for each request, because a cached revocation makes no call.
        const callers = Array.from({ length: AT_ONCE / 2 }, () => revocable())
        for (const { revoke } of await Promise.all(callers)) await revoke()
        await Promise.all([
          ...callers.map(async (bad) => count('refused', 401, (await bad).token)),
          ...callers.map(async () => count('served', 200, await mint(stack.inlineKey))),
        ])
        expect((await breakers()).redis).toBe('closed')
      }
      expect(counts).toEqual({ served: REQUESTS / 2, refused: REQUESTS / 2, other: 0 })
      expect(await originCalls(), NEVER).toBe(counts.served)
      // Each request called Redis once, or twice if a script was missing.
      expect(rest.calls.length).toBeGreaterThanOrEqual(REQUESTS)
    },
  )

  test('the gateway does not wait for a reply past its deadline, and ignores it afterwards [R03]', async () => {
    const bad = await revocable()
    expect(await statusOf(bad.token)).toBe(200)
    await bad.revoke()
    await forget(stack.origin)
    const held: (() => void)[] = []
    // The reply of Redis from before the revocation.
    const stale = rest.lastReply()
    rest.forget()
    rest.setFault((response) => held.push(() => response.end(stale)))
    await expectOutage(bad.token)
    // The gateway has answered while Redis still withholds its reply.
    expect(rest.calls.length).toBeGreaterThan(0)
    expect(rest.calls.length).toBeLessThanOrEqual(2)
    for (const release of held) release()
    expect(await originCalls(), NEVER).toBe(0)
    await mend()
    expect(await statusOf(bad.token)).toBe(401)
    expect(await originCalls(), NEVER).toBe(0)
  })
})

describe('a flapping Redis [R04]', () => {
  /** Requests while Redis is down, and from the first 200 on while it is up. */
  const DOWN = 15
  const UP = 30
  const PAUSE_MS = 20
  const sleep = () => new Promise((done) => setTimeout(done, PAUSE_MS))

  test('the error rate is the fraction of time in which Redis is down, and no lockout lasts longer [R04, R32]', async () => {
    const bad = await revocable()
    expect(await statusOf(bad.token)).toBe(200)
    await bad.revoke()
    await forget(stack.origin)
    const counts = { down: 0, errorsDown: 0, up: 0, errorsUp: 0, waiting: 0, mayWait: 0, served: 0 }
    for (const fault of [hangingUp, saying('<html>oops</html>', 502), hangingUp, hangingUp]) {
      const good = await mint(stack.inlineKey)
      rest.setFault(fault)
      const downMs = performance.now()
      for (let sent = 0; sent < DOWN; sent++) {
        counts.down += 1
        if ((await statusOf(good)) === 503) counts.errorsDown += 1
        expect([401, 503], NEVER).toContain(await statusOf(bad.token))
        await sleep()
      }
      // The most periods that can have begun. The last one may extend past the recovery of Redis. A
      // request then takes at least half as long as before.
      const lastedMs = performance.now() - downMs
      const periodMs = longestPeriodMs(Math.ceil(lastedMs / (FIRST_PERIOD_MS / 2)))
      counts.mayWait += Math.ceil((2 * periodMs * DOWN) / lastedMs)
      rest.setFault(undefined)
      let isServed = false
      for (let sent = 0; sent < UP; ) {
        const status = await statusOf(good)
        isServed ||= status === 200
        if (isServed) {
          sent += 1
          counts.up += 1
          if (status === 503) counts.errorsUp += 1
          expect(await statusOf(bad.token)).toBe(401)
        } else {
          counts.waiting += 1
          expect([401, 503], NEVER).toContain(await statusOf(bad.token))
          // Bounds the wait for a gateway that never recovers.
          expect(counts.waiting).toBeLessThanOrEqual(counts.mayWait)
        }
        if (status === 200) counts.served += 1
        await sleep()
      }
    }
    // While Redis is down every request fails; after the first success none fails.
    expect(counts).toMatchObject({ errorsDown: counts.down, errorsUp: 0, served: counts.up })
    const total = counts.down + counts.up + counts.waiting
    const errorRate = (counts.errorsDown + counts.waiting) / total
    const downFraction = counts.down / total
    console.info('R04:', { ...counts, errorRate, downFraction })
    expect(errorRate - downFraction).toBeLessThanOrEqual(counts.mayWait / total)
    expect(await originCalls(), NEVER).toBe(counts.served)
  })
})

describe('a Redis that is down for longer [R02]', () => {
  /** The shortest period with the maximum jitter. */
  const SHORTEST_PERIOD_MS = 250

  test.each<[string, Fault]>([
    ['silence', hanging],
    ['closed connections', hangingUp],
    ['an error page', saying('<html>oops</html>', 502)],
  ])(
    '%s: after detection no caller waits, and only probes are sent [R02, R32]',
    async (_, fault) => {
      const [good, bad] = [await mint(stack.inlineKey), await revocable()]
      expect([await statusOf(good), await statusOf(bad.token)]).toEqual([200, 200])
      await bad.revoke()
      await forget(stack.origin)
      rest.setFault(fault)
      await expect
        .poll(async () => {
          await expectOutage(good)
          return (await breakers()).redis
        }, RECOVERY)
        .not.toBe('closed')

      rest.forget()
      const sinceMs = performance.now()
      for (let count = 0; count < 100; count++) await expectOutage(count % 2 ? good : bad.token)
      const probes = 1 + Math.floor((performance.now() - sinceMs) / SHORTEST_PERIOD_MS)
      expect(rest.calls.length).toBeLessThanOrEqual(2 * probes)
      expect(await originCalls(), NEVER).toBe(0)

      await mend()
      expect((await breakers()).redis).toBe('closed')
      expect(await statusOf(bad.token)).toBe(401)
      // Recovery needs no restart, and no call is repeated later.
      rest.forget()
      for (let count = 0; count < 20; count++) expect(await statusOf(good)).toBe(200)
      expect(rest.calls.length).toBeLessThanOrEqual(2 * 20)
    },
  )

  test('operators get a line of JSON, not one per request, without secrets [R05]', () => {
    const logged = gateway
      .output()
      .split('\n')
      .filter((line) => line.includes('dependency_'))
    const down = logged.filter((line) => line.includes('"alarm":"dependency_down"'))
    expect(down.length).toBeGreaterThan(0)
    // One line in each minute, and these tests run for less time.
    expect(down.length).toBeLessThan(20)
    expect(logged.join('\n')).toContain('"dependency":"redis"')
    expect(logged.join('\n')).not.toMatch(/WRONGPASS|html|oops|pipeline|EVALSHA|pc:|Bearer/)
    expect(logged.join('\n')).not.toContain(rest.redis.token)
  })
})

describe('a Redis that refuses [R05]', () => {
  test.each<[number, string]>([
    [400, '{"error":"ERR max requests limit exceeded. Limit: 10000"}'],
    [401, '{"error":"WRONGPASS invalid or missing auth token"}'],
    [403, '{"error":"NOPERM this user has no permissions"}'],
    [429, '{"error":"ERR max requests limit exceeded"}'],
    [500, '<html>oops</html>'],
    [502, '<html>oops</html>'],
    [503, ''],
    [200, '[{"error":"READONLY"},{"error":"READONLY"},{"error":"READONLY"}]'],
    [200, '[{"error":"LOADING"},{"error":"OOM command not allowed"},{"error":"CLUSTERDOWN"}]'],
  ])(
    '%i %s is 503 after two calls at most, and no detail of it is exposed [R05, R12]',
    async (status, body) => {
      const token = await mint(stack.inlineKey)
      rest.setFault(saying(body, status))
      await expectOutage(token)
      expect(rest.calls.length).toBeLessThanOrEqual(2)
      expect(await originCalls(), NEVER).toBe(0)
      await mend()
      expect(await statusOf(token)).toBe(200)
    },
  )
})

describe('a Redis with malformed replies [R06]', () => {
  const nothing = '{"result":[null,null,null,null,null,null,null,null]}'
  const malformed: readonly (readonly [string, Fault])[] = [
    ['half an object', saying('{"result":')],
    ['an empty object', saying('{}')],
    ['an empty list', saying('[]')],
    ['null', saying('null')],
    ['a result that is an object', saying('{"result":{}}')],
    ['objects as results', saying('[{"result":{}},{"result":{}},{"result":{}}]')],
    ['numbers as results', saying('[{"result":7},{"result":7},{"result":7}]')],
    ['strings as results', saying('[{"result":"no"},{"result":"no"},{"result":"no"}]')],
    ['invalid base64', saying('[{"result":"%%%"},{"result":"!"},{"result":"="}]')],
    ['a list that is too short', saying(`[${nothing}]`)],
    ['only nulls', saying('[{"result":null},{"result":null},{"result":null}]')],
    ['bytes that are not UTF-8', saying(Buffer.from([0x5b, 0xff, 0xfe, 0x5d]))],
    ['a string of 10 MB', saying(JSON.stringify([{ result: 'x'.repeat(10 * MEGABYTE) }]))],
    // Its depth is the fault. The text above is the large reply.
    ['2 MB of brackets', saying('['.repeat(2 * MEGABYTE))],
  ]

  test.each(malformed)(
    '%s is an outage, never a "no", for cached and uncached callers [R06]',
    async (_, fault) => {
      const bad = await revocable()
      expect(await statusOf(bad.token)).toBe(200)
      await bad.revoke()
      await forget(stack.origin)
      const reference = crypto.randomUUID()
      rest.setFault(fault)
      await expectOutage(bad.token)
      await expectOutage(reference)
      expect((await fetch(`${url}/public/ping`)).status).toBe(503)
      expect(await originCalls(), NEVER).toBe(0)
      await mend()
      expect(await statusOf(bad.token)).toBe(401)
      expect(await statusOf(reference)).toBe(401)
      expect(await originCalls(), NEVER).toBe(0)
    },
  )
})

describe('a Redis with one malformed part in its reply [R06]', () => {
  /**
   * The script's reply: the number of existing keys, whether the proof was used, and three numbers
   * for the limit.
   */
  type Sound = readonly [there: number, used: number, ...limit: number[]]
  const partly: readonly (readonly [string, (sound: Sound) => object])[] = [
    ['null', () => ({ result: null })],
    ['an object', () => ({ result: {} })],
    ['an empty list', () => ({ result: [] })],
    ['an error', () => ({ error: 'OOM' })],
    ['nothing', () => ({})],
    ['null for the existing keys', ([, ...others]) => ({ result: [null, ...others] })],
    ['another number of existing keys', ([, ...others]) => ({ result: [1, ...others] })],
    ['no number of existing keys', ([, ...others]) => ({ result: others })],
    ['null for the proof', ([there, , ...limit]) => ({ result: [there, null, ...limit] })],
    ['an error for the window', ([there, used]) => ({ result: [there, used, -1, 0, 0] })],
    ['null for the window', ([there, used]) => ({ result: [there, used, null, null, null] })],
    ['no window', ([there, used]) => ({ result: [there, used] })],
    ['one part missing', (sound) => ({ result: sound.slice(0, -1) })],
    ['one part added', (sound) => ({ result: [...sound, 0] })],
  ]

  test.each(partly)('%s is an outage of the whole reply [R06]', async (_, spoil) => {
    const bad = await revocable()
    expect(await statusOf(bad.token)).toBe(200)
    const [{ result }] = JSON.parse(rest.lastReply().toString()) as [{ result: Sound }]
    expect(result).toHaveLength(5)
    await bad.revoke()
    await forget(stack.origin)
    rest.setFault(saying(JSON.stringify([spoil(result)])))
    await expectOutage(bad.token)
    expect(await originCalls(), NEVER).toBe(0)
  })
})

describe('a replica that lags [R13]', () => {
  test('a revocation takes effect with the first reply that includes it [R13]', async () => {
    const bad = await revocable()
    expect(await statusOf(bad.token)).toBe(200)
    const stale = rest.lastReply()
    await bad.revoke()
    rest.setFault((response) => response.end(stale))
    // The bound that the threat model states: as long as the replica lags, and no longer.
    expect(await statusOf(bad.token)).toBe(200)
    await mend()
    expect(await statusOf(bad.token)).toBe(401)
    rest.setFault((response) => response.end(stale))
    // An older reply does not replace a cached refusal.
    expect(await statusOf(bad.token)).toBe(401)
  })
})

test('after all these faults Redis holds only documented keys, and no credential [S34, S40]', async () => {
  expect(await statusOf(await mint(stack.inlineKey))).toBe(200)
  expect(await complaintsAbout(rest.redis.direct)).toEqual([])
})

describe('a Redis that loses all data [R14]', () => {
  /** Stores the record of an opaque token and returns the token. */
  async function opaque(): Promise<string> {
    const text = crypto.randomUUID()
    const publicUrl = stack.env.PUBLIC_URL ?? ''
    const record = recordOf({ tokenIssuer: publicUrl, issuer: ISSUER, audiences: [publicUrl] })
    const key = DEFAULT_KEYS.reference + (await credentialHash(text))
    await rest.redis.direct.set(key, await storedReference(record), 'EX', 600)
    return text
  }

  test('data that only Redis has is lost and grants nothing; the rest works, and limits start anew [R14]', async () => {
    const [good, bad] = [await mint(stack.inlineKey), await revocable()]
    const [opened, unopened] = [await opaque(), await opaque()]
    const here = { ...stack, gateways: [url, url] } as const
    const client = await createStackClient(here)
    const login = { subject_token: await mint(stack.inlineKey), subject_token_type: ACCESS_TOKEN }
    const exchange = { grant_type: EXCHANGE, ...login }
    const granted = await postAs(client, `${url}/oauth/token`, exchange)
    const { refresh_token = '' } = (await granted.json()) as { refresh_token?: string }
    expect(refresh_token).not.toBe('')
    expect([await statusOf(good), await statusOf(opened)]).toEqual([200, 200])
    await bad.revoke()
    expect(await statusOf(bad.token)).toBe(401)

    await rest.redis.direct.flushall()
    await rest.redis.direct.script('FLUSH')
    await forget(stack.origin)
    // The isolate caches the refusal for ten seconds.
    expect(await statusOf(bad.token)).toBe(401)
    expect(await statusOf(unopened)).toBe(401)
    const refresh = { grant_type: 'refresh_token', refresh_token }
    const refused = await postAs(client, `${url}/oauth/token`, refresh)
    expect([400, 401]).toContain(refused.status)
    expect(await refused.text()).not.toContain('access_token')
    expect(await originCalls(), NEVER).toBe(0)

    expect(await statusOf(good)).toBe(200)
    const response = await get(await mint(stack.inlineKey))
    expect(response.status).toBe(200)
    expect(response.headers.get('ratelimit')).toMatch(/^"standard";r=99;/)
    // A new revocation takes effect at once.
    await bad.revoke()
    expect(await statusOf(bad.token)).toBe(401)
  })
})
