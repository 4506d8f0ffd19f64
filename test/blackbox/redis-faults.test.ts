/** One gateway in real workerd, whose Redis misbehaves in every way that the wire allows. */
import { createHash } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import { FIRST_PERIOD_MS, longestPeriodMs } from '../../src/isolate/circuit-breaker.ts'
import { credentialHash, referenceKey } from '../../src/tokens/reference.ts'
import { storedReference } from '../../src/tokens/stored-reference.ts'
import { recordOf } from '../admission/callers.ts'
import { forget, recordsOf } from '../harness/control.ts'
import { ISSUER, mint } from '../harness/issuer.ts'
import { NEVER } from '../harness/never.ts'
import { freePort, type Running, run } from '../harness/process.ts'
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
/** Longer than a healthy Redis takes on a busy machine; an outage is found after it. */
const DEADLINE_MS = 700
/** After an outage the breaker asks again within its period, which is 5 s at the most. */
const RECOVERY = { timeout: 20_000, interval: 200 }
const MEGABYTE = 1_048_576
const SECRETS =
  /redis|upstash|WRONGPASS|max requests|READONLY|LOADING|OOM|CLUSTERDOWN|html|oops|pipeline|EVALSHA|pc:/i

let rest: FaultyRest
let gateway: Running
let url: string

beforeAll(async () => {
  rest = await startFaultyRest()
  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  const env = {
    ...stack.env,
    PORT: String(port),
    UPSTASH_REDIS_REST_URL: rest.url,
    REDIS_TIMEOUT_MS: String(DEADLINE_MS),
    UPSTASH_REDIS_REST_TOKEN: rest.redis.token,
  }
  const command = [process.execPath, 'dev/start.ts'] as const
  gateway = await run(command, env, 'Portcullis is ready on')
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
    // Of its own each: failures are counted by address.
    headers: { authorization: `Bearer ${token}`, 'cf-connecting-ip': newAddress() },
  })
const originCalls = async () => (await recordsOf(stack.origin)).length

async function statusOf(token: string): Promise<number> {
  const response = await get(token)
  await response.text()
  return response.status
}

/** Ends the fault, waits until the gateway serves again, and forgets how the origin saw that. */
async function mend(): Promise<void> {
  rest.setFault(undefined)
  await recovered(stack, [url])
  await forget(stack.origin)
}

const breakers = async () => {
  const response = await fetch(`${url}/-/readyz`)
  return ((await response.json()) as { breakers: Record<string, string> }).breakers
}

/** A token, and what makes it a revoked one everywhere. */
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

describe('R03: a slow Redis', () => {
  const REQUESTS = 40
  const AT_ONCE = 4

  test.each([50, 200])(
    'R03: %i ms late, within the deadline: every request is decided, and the breaker stays closed',
    async (delayMs) => {
      const counts = { served: 0, refused: 0, other: 0 }
      const count = async (right: keyof typeof counts, expected: number, token: string) => {
        counts[(await statusOf(token)) === expected ? right : 'other'] += 1
      }
      rest.setDelay(delayMs)
      for (let sent = 0; sent < REQUESTS; sent += AT_ONCE) {
        // A token of its own each: what is known to be revoked asks nobody.
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
      // Each request asked Redis itself, once, or twice where a script was unknown.
      expect(rest.calls.length).toBeGreaterThanOrEqual(REQUESTS)
    },
  )

  test('R03: the gateway does not wait for an answer past its deadline, and takes none later', async () => {
    const bad = await revocable()
    expect(await statusOf(bad.token)).toBe(200)
    await bad.revoke()
    await forget(stack.origin)
    const held: (() => void)[] = []
    // What Redis said before it knew of the revocation.
    const stale = rest.lastReply()
    rest.forget()
    rest.setFault((response) => held.push(() => response.end(stale)))
    await expectOutage(bad.token)
    // It has answered while Redis still holds its own answer back.
    expect(rest.calls.length).toBeGreaterThan(0)
    expect(rest.calls.length).toBeLessThanOrEqual(2)
    for (const release of held) release()
    expect(await originCalls(), NEVER).toBe(0)
    await mend()
    expect(await statusOf(bad.token)).toBe(401)
    expect(await originCalls(), NEVER).toBe(0)
  })
})

describe('R04: a flapping Redis', () => {
  /** Requests while Redis is down, and from the first 200 on while it is up. */
  const DOWN = 15
  const UP = 30
  const PAUSE_MS = 20
  const sleep = () => new Promise((done) => setTimeout(done, PAUSE_MS))

  test('R04, R32: the error rate is the fraction of the time that Redis is down, and nothing locks out for longer', async () => {
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
      // So many periods have begun at most, and the last of them may go on when Redis is back. A
      // request then takes half as long as one did, or longer.
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
          // Or a gateway that never recovers would be waited for without end.
          expect(counts.waiting).toBeLessThanOrEqual(counts.mayWait)
        }
        if (status === 200) counts.served += 1
        await sleep()
      }
    }
    // While Redis is down every request is an error; once one is served, none is.
    expect(counts).toMatchObject({ errorsDown: counts.down, errorsUp: 0, served: counts.up })
    const total = counts.down + counts.up + counts.waiting
    const errorRate = (counts.errorsDown + counts.waiting) / total
    const downFraction = counts.down / total
    console.info('R04:', { ...counts, errorRate, downFraction })
    expect(errorRate - downFraction).toBeLessThanOrEqual(counts.mayWait / total)
    expect(await originCalls(), NEVER).toBe(counts.served)
  })
})

describe('R02: a Redis that is down for longer', () => {
  /** No period is shorter, whatever chance takes off. */
  const SHORTEST_PERIOD_MS = 250

  test.each<[string, Fault]>([
    ['silence', hanging],
    ['hanging up', hangingUp],
    ['an error page', saying('<html>oops</html>', 502)],
  ])('R02, R32: %s: found out once, then nobody waits and only probes go out', async (_, fault) => {
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
    // Nobody had to be told, and nothing is made up for.
    rest.forget()
    for (let count = 0; count < 20; count++) expect(await statusOf(good)).toBe(200)
    expect(rest.calls.length).toBeLessThanOrEqual(2 * 20)
  })

  test('R05: operators are told in a line of JSON, not once per request, and nothing of it is secret', () => {
    const told = gateway
      .output()
      .split('\n')
      .filter((line) => line.includes('dependency_'))
    const down = told.filter((line) => line.includes('"alarm":"dependency_down"'))
    expect(down.length).toBeGreaterThan(0)
    // A minute apart, and these tests have not run for so long.
    expect(down.length).toBeLessThan(20)
    expect(told.join('\n')).toContain('"dependency":"redis"')
    expect(told.join('\n')).not.toMatch(/WRONGPASS|html|oops|pipeline|EVALSHA|pc:|Bearer/)
    expect(told.join('\n')).not.toContain(rest.redis.token)
  })
})

describe('R05: a Redis that refuses', () => {
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
    'R05, R12: %i %s is 503 after two calls at most, and nothing of it is told',
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

describe('R06: a Redis that answers rubbish', () => {
  const nothing = '{"result":[null,null,null,null,null,null,null,null]}'
  const rubbish: readonly (readonly [string, Fault])[] = [
    ['half an object', saying('{"result":')],
    ['an empty object', saying('{}')],
    ['an empty list', saying('[]')],
    ['null', saying('null')],
    ['a result that is an object', saying('{"result":{}}')],
    ['objects for results', saying('[{"result":{}},{"result":{}},{"result":{}}]')],
    ['numbers for results', saying('[{"result":7},{"result":7},{"result":7}]')],
    ['texts for results', saying('[{"result":"no"},{"result":"no"},{"result":"no"}]')],
    ['what is no base64', saying('[{"result":"%%%"},{"result":"!"},{"result":"="}]')],
    ['a list that is too short', saying(`[${nothing}]`)],
    ['nulls alone', saying('[{"result":null},{"result":null},{"result":null}]')],
    ['bytes that are no UTF-8', saying(Buffer.from([0x5b, 0xff, 0xfe, 0x5d]))],
    ['10 MB of a text', saying(JSON.stringify([{ result: 'x'.repeat(10 * MEGABYTE) }]))],
    ['10 MB of brackets', saying('['.repeat(10 * MEGABYTE))],
  ]

  test.each(rubbish)(
    'R06: %s is an outage, never a "no", to known and unknown',
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

describe('R06: a Redis of whose answer one part is rubbish', () => {
  /** Of the script: what is there, whether a proof was used, and of the limit three numbers. */
  type Sound = readonly [there: number, used: number, ...limit: number[]]
  const partly: readonly (readonly [string, (sound: Sound) => object])[] = [
    ['null', () => ({ result: null })],
    ['an object', () => ({ result: {} })],
    ['an empty list', () => ({ result: [] })],
    ['an error', () => ({ error: 'OOM' })],
    ['nothing', () => ({})],
    ['null for what is there', ([, ...others]) => ({ result: [null, ...others] })],
    ['another count of what is there', ([, ...others]) => ({ result: [1, ...others] })],
    ['no count of what is there', ([, ...others]) => ({ result: others })],
    ['null for the proof', ([there, , ...limit]) => ({ result: [there, null, ...limit] })],
    ['an error for the window', ([there, used]) => ({ result: [there, used, -1, 0, 0] })],
    ['null for the window', ([there, used]) => ({ result: [there, used, null, null, null] })],
    ['no window', ([there, used]) => ({ result: [there, used] })],
    ['one part too few', (sound) => ({ result: sound.slice(0, -1) })],
    ['one part too many', (sound) => ({ result: [...sound, 0] })],
  ]

  test.each(partly)('R06: %s is an outage of all', async (_, spoil) => {
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

describe('R13: a replica that lags', () => {
  test('R13: a revocation holds from the first answer on that knows of it', async () => {
    const bad = await revocable()
    expect(await statusOf(bad.token)).toBe(200)
    const stale = rest.lastReply()
    await bad.revoke()
    rest.setFault((response) => response.end(stale))
    // The bound that the threat model states: for as long as the replica lags, and no longer.
    expect(await statusOf(bad.token)).toBe(200)
    await mend()
    expect(await statusOf(bad.token)).toBe(401)
    rest.setFault((response) => response.end(stale))
    // What is known does not become unknown by an older answer, while it is remembered.
    expect(await statusOf(bad.token)).toBe(401)
  })
})

test('S34, S40: after all of this its Redis holds what is documented, and no credential', async () => {
  expect(await statusOf(await mint(stack.inlineKey))).toBe(200)
  expect(await complaintsAbout(rest.redis.direct)).toEqual([])
})

describe('R14: a Redis that loses everything', () => {
  /** Keeps what an opaque token stands for, and returns it. */
  async function opaque(): Promise<string> {
    const text = crypto.randomUUID()
    const publicUrl = stack.env.PUBLIC_URL ?? ''
    const record = recordOf({ tokenIssuer: publicUrl, issuer: ISSUER, audiences: [publicUrl] })
    const key = referenceKey(await credentialHash(text))
    await rest.redis.direct.set(key, await storedReference(record), 'EX', 600)
    return text
  }

  test('R14: what only Redis knows is gone and not open; the rest goes on, limits begin anew', async () => {
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
    // The isolate remembers for ten seconds.
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
    // A revocation that is written anew holds at once.
    await bad.revoke()
    expect(await statusOf(bad.token)).toBe(401)
  })
})
