/** Revocation by push while the subjects send requests over two gateways, one on each runtime. */
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { serve } from '../../../src/runtimes/node/index.ts'
import { createKey, ISSUER, mint } from '../../harness/issuer.ts'
import { usualOrLong } from '../../harness/long.ts'
import { freePort } from '../../harness/process.ts'
import { redisVars, startTestRedis } from '../../harness/redis.ts'
import { startHttpOrigin } from '../../origin/origin-server.ts'
import { startWorkerd } from '../../origin/workerd.ts'
import { signalPolicy } from './policy.ts'
import { CAEP, pushEvent, signEvent, userOf } from './transmitter.ts'

const REQUESTS_AFTER = 4
/** So long that a hundred callers do not keep a core busy. */
const PAUSE_MS = 1_000
/** Requests at once. More are an outage to a gateway on a slow machine, because its calls to Redis end too late. */
const AT_ONCE = 10

type Gateways = Awaited<ReturnType<typeof startGateways>>

async function startGateways(maxStalenessMs: number) {
  const redis = await startTestRedis()
  await redis.direct.flushall()
  const origin = await startHttpOrigin((request, response) => {
    if (request.url !== '/events') return void response.end('[]')
    response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(': open\n\n')
  })
  const key = await createKey('idp')
  const [port, workerPort] = [await freePort(), await freePort()]
  const audience = 'https://gateway.test'
  const vars = {
    ...redisVars(redis),
    PUBLIC_URL: audience,
    ORIGIN_URL: `http://127.0.0.1:${origin.port}`,
    ISSUERS: JSON.stringify([{ issuer: ISSUER, audience, jwks: { keys: [key.publicJwk] } }]),
  }
  const server = await serve({
    policy: signalPolicy(undefined, maxStalenessMs),
    env: { ...vars, AUDIT_DATABASE: undefined, TRUSTED_PROXIES: '127.0.0.1' },
    port,
    graceMs: 1_000,
  })
  const worker = await startWorkerd({
    entry: join(import.meta.dirname, 'worker.ts'),
    vars: { ...vars, MAX_STALENESS_MS: String(maxStalenessMs) },
    port: workerPort,
  })
  return {
    urls: [`http://127.0.0.1:${port}`, `http://127.0.0.1:${workerPort}`] as const,
    key,
    reached: origin.requests,
    token: (sub: string) => mint(key, { claims: { aud: audience, sub } }),
    async close() {
      await Promise.all([server.close(), worker.stop(), origin.close()])
      await redis.close()
    },
  }
}

const ADDRESS = { 'cf-connecting-ip': '192.0.2.1', 'x-forwarded-for': '192.0.2.1' }

/** With a bound, each subject sends requests for that long after its event. */
const BOUNDS = [
  { maxStalenessMs: 0, subjectCount: 100 },
  { maxStalenessMs: 1_000, subjectCount: usualOrLong(40, 100) },
]

describe.each(BOUNDS)(
  'with a bound of $maxStalenessMs ms [S90]',
  ({ maxStalenessMs, subjectCount }) => {
    let gateways: Gateways
    beforeAll(async () => {
      gateways = await startGateways(maxStalenessMs)
    })
    afterAll(() => gateways?.close())

    const send = (url: string, path: string, token: string) =>
      fetch(url + path, { headers: { ...ADDRESS, authorization: `Bearer ${token}` } })

    const turns = Array.from({ length: AT_ONCE }, () => Promise.resolve<unknown>(undefined))
    /** Runs the call of the `n`-th subject after those of the subjects that have the same turn. */
    function inTurn<Result>(n: number, act: () => Promise<Result>): Promise<Result> {
      const result = (turns[n % AT_ONCE] as Promise<unknown>).then(act)
      turns[n % AT_ONCE] = result.catch(() => undefined)
      return result
    }

    test(`no request of ${subjectCount} subjects is admitted after their events are accepted`, async () => {
      const pushedMs = new Map<string, number>()
      const before: number[] = []
      const after: number[] = []

      async function sendAlways(sub: string, token: string, n: number) {
        let left = REQUESTS_AFTER
        for (let at = 0; left > 0 && at < 400; at++) {
          const { isRevoked, status } = await inTurn(n, async () => {
            const pushed = pushedMs.get(sub)
            const isRevoked = pushed !== undefined && Date.now() >= pushed + maxStalenessMs
            const response = await send(gateways.urls[at % 2] ?? '', '/orders', token)
            await response.arrayBuffer()
            return { isRevoked, status: response.status }
          })
          await setTimeout(PAUSE_MS)
          const statuses = isRevoked ? after : before
          statuses.push(status)
          if (isRevoked) left -= 1
        }
      }

      const subjects = await Promise.all(
        Array.from({ length: subjectCount }, async (_, n) => {
          const sub = `subject-${n}`
          return { sub, token: await gateways.token(sub) }
        }),
      )
      const sending = Promise.all(subjects.map(({ sub, token }, n) => sendAlways(sub, token, n)))
      await expect.poll(() => before.length).toBeGreaterThan(subjectCount)
      for (const [at, { sub }] of subjects.entries()) {
        const event = await signEvent(gateways.key, `${CAEP}session-revoked`, userOf(sub))
        const response = await pushEvent(gateways.urls[at % 2] ?? '', event, ADDRESS)
        expect(response.status).toBe(202)
        pushedMs.set(sub, Date.now())
      }
      await sending
      expect(after).toEqual(Array.from({ length: subjectCount * REQUESTS_AFTER }, () => 401))
      expect(before.filter((status) => status === 200).length).toBeGreaterThan(subjectCount)
      expect(before.filter((status) => status !== 200 && status !== 401)).toEqual([])
    })

    test('a stream of the subject ends on each runtime', async () => {
      const token = await gateways.token('listener')
      const streams = await Promise.all(gateways.urls.map((url) => send(url, '/events', token)))
      expect(streams.map(({ status }) => status)).toEqual([200, 200])
      const event = await signEvent(gateways.key, `${CAEP}session-revoked`, userOf('listener'))
      expect((await pushEvent(gateways.urls[0], event, ADDRESS)).status).toBe(202)
      // Each is broken off: none ends as if it were complete.
      const ends = await Promise.allSettled(streams.map((stream) => stream.text()))
      expect(ends.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    })
  },
)
