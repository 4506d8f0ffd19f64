/** The cost of coalesced requests and of new credentials in the complete gateway. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ADMITTED_FOR_MS } from '../../src/access/admission/admission.ts'
import { newApiKey } from '../../src/access/tokens/api-key.ts'
import { createReferenceStore } from '../../src/access/tokens/redis/references.ts'
import { credentialHash } from '../../src/access/tokens/reference.ts'
import { createRedisRest } from '../../src/redis/rest.ts'
import { AUDIENCE, createKey, ISSUER, mint, type TestKey } from '../harness/issuer.ts'
import { redisVars, startTestRedis, type TestRedis } from '../harness/redis.ts'
import type { Observed } from './observed-gateway.ts'
import { startHttpOrigin } from './origin-server.ts'
import { RUNTIMES } from './runtimes.ts'
import type { Running } from './workerd.ts'

const AT_ONCE = 100
const PUBLIC_URL = 'https://gateway.test'
const PATIENCE = { timeout: 20_000 }
/** A key of a call that admits again. The call that counts an API key has its record instead. */
const OF_READMISSION = 'pc:revoked:'

interface Call {
  readonly atMs: number
  readonly commands: string
}

describe.each(RUNTIMES)('on $name', ({ start }) => {
  let redis: TestRedis
  let origin: Awaited<ReturnType<typeof startHttpOrigin>>
  let key: TestKey
  let gateway: Running
  /** Undefined: the origin answers at once. */
  let held: [IncomingMessage, ServerResponse][] | undefined
  const calls: Call[] = []

  const answer = (request: IncomingMessage, response: ServerResponse) =>
    response.end(`${request.headers['x-auth-subject']} reads ${request.url}`)

  beforeAll(async () => {
    redis = await startTestRedis('auto', (commands) => calls.push({ atMs: Date.now(), commands }))
    await redis.direct.flushall()
    key = await createKey('idp')
    origin = await startHttpOrigin((request, response) => {
      if (held === undefined) answer(request, response)
      else held.push([request, response])
    })
    const vars = {
      ...redisVars(redis),
      PUBLIC_URL,
      ORIGIN_URL: `http://127.0.0.1:${origin.port}`,
      ISSUERS: JSON.stringify([
        { issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [key.publicJwk] } },
      ]),
    }
    gateway = await start({ entry: 'test/origin/observed-gateway.ts', vars })
  })
  afterAll(async () => {
    await Promise.all([gateway?.stop(), origin?.close()])
    await redis?.close()
  })

  const url = (path: string) => `http://127.0.0.1:${gateway.port}${path}`
  const observed = async () => (await (await fetch(url('/read-here'))).json()) as Observed

  /**
   * Returns the responses to simultaneous requests. Reads each response to its end: the gateway admits the caller of an
   * open one again, which is a call to Redis.
   */
  const askAtOnce = (path: string, credentials: readonly string[]): Promise<Response[]> =>
    Promise.all(
      credentials.map(async (credential) => {
        const headers = { authorization: `Bearer ${credential}` }
        const response = await fetch(url(path), { headers })
        return new Response(await response.arrayBuffer(), response)
      }),
    )

  const callsFor = (path: string) =>
    origin.requests.filter((request) => request.url === path).length

  describe('a route that coalesces', () => {
    test('makes 1 call to the origin for 100 simultaneous requests, and admits, counts and records each of them', async () => {
      const token = await mint(key, { claims: { sub: 'alice' } })
      const before = await observed()
      held = []
      const answers = askAtOnce('/shared/a', Array(AT_ONCE).fill(token) as string[])
      await expect
        .poll(async () => (await observed()).admitted - before.admitted, PATIENCE)
        .toBe(AT_ONCE)
      await expect.poll(() => held?.length, PATIENCE).toBe(1)
      for (const [request, response] of held) answer(request, response)
      held = undefined

      const responses = await answers
      const ids = responses.map(({ headers }) => headers.get('x-request-id'))
      const left = responses.map(
        ({ headers }) => /r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1],
      )
      for (const response of responses) {
        expect([response.status, await response.text()]).toEqual([200, 'alice reads /shared/a'])
        expect(response.headers.get('cache-control')).toBe('private')
      }
      expect(callsFor('/shared/a')).toBe(1)
      expect([new Set(ids).size, new Set(left).size]).toEqual([AT_ONCE, AT_ONCE])
      const { decisions } = await observed()
      const allowed = decisions.filter(({ decision }) => decision === 'allow')
      expect(allowed.map(({ requestId }) => requestId).sort()).toEqual([...ids].sort())
    })

    test('makes two calls for two callers, and each receives its own response', async () => {
      const names = Array.from({ length: AT_ONCE }, (_, at) => (at % 2 === 0 ? 'bob' : 'carol'))
      const tokens = {
        bob: await mint(key, { claims: { sub: 'bob' } }),
        carol: await mint(key, { claims: { sub: 'carol' } }),
      }
      const before = await observed()
      held = []
      const answers = askAtOnce(
        '/shared/b',
        names.map((name) => tokens[name as keyof typeof tokens]),
      )
      await expect
        .poll(async () => (await observed()).admitted - before.admitted, PATIENCE)
        .toBe(AT_ONCE)
      await expect.poll(() => held?.length, PATIENCE).toBe(2)
      for (const [request, response] of held) answer(request, response)
      held = undefined
      const bodies = await Promise.all((await answers).map((response) => response.text()))
      expect(bodies).toEqual(names.map((name) => `${name} reads /shared/b`))
      expect(callsFor('/shared/b')).toBe(2)
    })

    test('gives a refused caller nothing of a shared response', async () => {
      const good = await mint(key, { claims: { sub: 'dora' } })
      const strangers = [
        await mint(key, { claims: { sub: 'dora', roles: [] } }),
        await mint(await createKey('idp'), { claims: { sub: 'dora' } }),
      ]
      const before = await observed()
      held = []
      const answers = askAtOnce('/shared/c', [good, good])
      await expect.poll(async () => (await observed()).admitted - before.admitted, PATIENCE).toBe(2)
      const refused = await askAtOnce('/shared/c', strangers)
      expect(refused.map(({ status }) => status)).toEqual([403, 401])
      await expect.poll(() => held?.length, PATIENCE).toBe(1)
      for (const [request, response] of held) answer(request, response)
      held = undefined
      expect((await answers).map(({ status }) => status)).toEqual([200, 200])
      expect(callsFor('/shared/c')).toBe(1)
    })
  })

  describe('a route that does not coalesce', () => {
    test('calls the origin for each request', async () => {
      const token = await mint(key)
      const before = callsFor('/single/a')
      const responses = await askAtOnce('/single/a', Array(20).fill(token) as string[])
      expect(responses.map(({ status }) => status)).toEqual(Array(20).fill(200))
      expect(callsFor('/single/a') - before).toBe(20)
    })
  })

  describe('a credential that is not in the cache of the isolate', () => {
    test('100 simultaneous first requests make 100 calls to Redis for counting, and no more [R08]', async () => {
      // Redis must have the script already: otherwise the first call is repeated with its full text.
      await askAtOnce('/single/b', [await newKeyOf('weekly')])
      const apiKey = await newKeyOf('nightly')
      calls.length = 0
      const sentMs = Date.now()
      const responses = await askAtOnce('/single/b', Array(AT_ONCE).fill(apiKey) as string[])
      for (const response of responses) {
        expect([response.status, await response.text()]).toEqual([200, 'nightly reads /single/b'])
      }
      const left = responses.map(
        ({ headers }) => /r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1],
      )
      expect(new Set(left).size).toBe(AT_ONCE)
      // A request whose admission took longer is admitted again, on a slow machine.
      const isReadmission = ({ atMs, commands }: Call) =>
        atMs - sentMs >= ADMITTED_FOR_MS && commands.includes(OF_READMISSION)
      expect(calls.filter((call) => !isReadmission(call))).toHaveLength(AT_ONCE)
    })
  })

  async function newKeyOf(subject: string): Promise<string> {
    const apiKey = newApiKey()
    const references = createReferenceStore(
      createRedisRest({ url: redis.url, token: redis.token, timeoutMs: 5_000 }),
    )
    const nowSeconds = Math.floor(Date.now() / 1000)
    await references.put(await credentialHash(apiKey), {
      kind: 'api_key',
      tokenId: crypto.randomUUID(),
      tokenIssuer: PUBLIC_URL,
      issuer: PUBLIC_URL,
      subject,
      roles: ['reader'],
      scopes: [],
      audiences: [PUBLIC_URL],
      issuedAtSeconds: nowSeconds,
      expiresAtSeconds: nowSeconds + 600,
    })
    return apiKey
  }
})
