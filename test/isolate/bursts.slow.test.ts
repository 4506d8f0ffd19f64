/**
 * Bursts in real workerd beside two busy loops. A Redis that answers in 5 ms never counts as an
 * outage; one that is late or silent always does. The gateway is starved of CPU and Redis is not:
 * Redis runs in its own process, with a higher priority than the gateway and the busy loops.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { setPriority } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Fault } from '../../dev/fault-proxy/fault.ts'
import { FIRST_PERIOD_MS } from '../../src/isolate/circuit-breaker.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { createKey, ISSUER, mint } from '../harness/issuer.ts'
import { NEVER } from '../harness/never.ts'
import { type Running, startWorkerd } from '../origin/workerd.ts'

const WORKERS = join(import.meta.dirname, 'workers')
const PUBLIC_URL = 'https://gateway.test'
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'
const CLIENT = { id: 'f5b4ce2b-3bd6-4d6c-b671-2e6a4d1f9a11', secret: 'a'.repeat(43) }
/** The default of `maxConcurrentRequests`. */
const MOST = 1_000
const SUBJECTS = 50
const ROUNDS = 3
const PROMPT: Fault = { kind: 'latency', ms: 5 }
const TIMEOUT = { timeout: 300_000 }
/** The priority of the gateway and the busy loops: a third of the share that Redis gets. */
const LOW_PRIORITY = 5

let redis: ChildProcess
let origin: TestServer
let gateway: Running
let busy: ChildProcess[]
let tokens: string[]
let reached = 0

async function set(fault: Fault): Promise<void> {
  const done = once(redis, 'message')
  redis.send(fault)
  await done
}

beforeAll(async () => {
  const token = randomBytes(32).toString('base64url')
  redis = fork(join(WORKERS, 'redis.ts'), { env: { ...process.env, REST_TOKEN: token } })
  const [url] = (await once(redis, 'message')) as [string]
  await set(PROMPT)
  origin = await startHttpServer((incoming, response) => {
    reached += 1
    incoming.resume()
    response.end('[]')
  })
  const idp = await createKey('idp')
  tokens = await Promise.all(
    Array.from({ length: SUBJECTS }, (_, index) =>
      mint(idp, { claims: { sub: `user-${index}`, aud: PUBLIC_URL } }),
    ),
  )
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const signingKey = {
    ...privateKey.export({ format: 'jwk' }),
    kid: 'own',
    alg: 'ES256',
    use: 'sig',
  }
  gateway = await startWorkerd({
    entry: join(WORKERS, 'bursts.ts'),
    vars: {
      UPSTASH_REDIS_REST_URL: url,
      UPSTASH_REDIS_REST_TOKEN: token,
      PUBLIC_URL,
      ORIGIN_URL: origin.url,
      SIGNING_KEYS: JSON.stringify({ keys: [signingKey] }),
      ISSUERS: JSON.stringify([
        { issuer: ISSUER, audience: PUBLIC_URL, jwks: { keys: [idp.publicJwk] } },
      ]),
      CLIENTS: JSON.stringify([
        {
          id: CLIENT.id,
          grants: [EXCHANGE, 'refresh_token'],
          secretSha256: createHash('sha256').update(CLIENT.secret).digest('base64url'),
        },
      ]),
    },
  })
  // A process that has just started does not answer in 5 ms yet.
  const init = { method: 'POST', headers: { authorization: `Bearer ${token}` }, body: '[["PING"]]' }
  for (let count = 0; count < 200; count++)
    expect((await fetch(`${url}/pipeline`, init)).ok).toBe(true)
  busy = [1, 2].map(() => spawn(process.execPath, ['-e', 'for(;;);']))
  for (const { pid = 0 } of [gateway, ...busy]) setPriority(pid, LOW_PRIORITY)
})
afterAll(async () => {
  for (const loop of busy ?? []) loop.kill('SIGKILL')
  await gateway?.stop()
  await origin?.close()
  if (redis?.connected) {
    redis.disconnect()
    await once(redis, 'exit')
  }
})

interface Answer {
  readonly status: number
  readonly body: string
}

const agent = new Agent({ maxSockets: Number.POSITIVE_INFINITY })

function send(path: string, authorization: string, form?: Record<string, string>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const method = form === undefined ? 'GET' : 'POST'
    const headers = {
      authorization,
      ...(form && { 'content-type': 'application/x-www-form-urlencoded' }),
    }
    request(`http://127.0.0.1:${gateway.port}${path}`, { agent, method, headers }, (answer) => {
      let body = ''
      answer.setEncoding('utf8').on('data', (text: string) => {
        body += text
      })
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body }))
    })
      .on('error', reject)
      .end(form && new URLSearchParams(form).toString())
  })
}

/** Counts the responses by status. */
function counted(answers: readonly Answer[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

const burst = (count: number) =>
  Promise.all(
    Array.from({ length: count }, (_, index) =>
      send('/orders', `Bearer ${tokens[index % tokens.length]}`),
    ),
  )

const BASIC = `Basic ${btoa(`${CLIENT.id}:${CLIENT.secret}`)}`
async function session(subject_token = ''): Promise<string> {
  const form = { grant_type: EXCHANGE, subject_token, subject_token_type: ACCESS_TOKEN }
  const { status, body } = await send('/oauth/token', BASIC, form)
  expect(status, body).toBe(200)
  return (JSON.parse(body) as { refresh_token: string }).refresh_token
}

test.each([200, MOST])('in a burst of %i each request is served [R03]', TIMEOUT, async (count) => {
  for (let round = 0; round < ROUNDS; round++) {
    const before = reached
    expect(counted(await burst(count)), `round ${round}`).toEqual({ 200: count })
    expect(reached - before).toBe(count)
  }
})

test('of 50 concurrent refreshes each is served', TIMEOUT, async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const refresh_token = await session(tokens[round])
    const form = { grant_type: 'refresh_token', refresh_token }
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => send('/oauth/token', BASIC, form)),
    )
    expect(counted(answers), `round ${round}`).toEqual({ 200: 50 })
  }
})

test.each<[string, Fault]>([
  // So late that no slow machine can compensate for it.
  ['answers after a minute', { kind: 'latency', ms: 60_000 }],
  ['is silent', { kind: 'hang' }],
])(
  'a Redis that %s is an outage for each request of a burst [R02, R03]',
  TIMEOUT,
  async (_, fault) => {
    const before = reached
    await set(fault)
    expect(counted(await burst(200))).toEqual({ 503: 200 })
    expect(counted(await burst(MOST))).toEqual({ 503: MOST })
    expect(reached, NEVER).toBe(before)
    // The breaker is open, so the next requests do not wait for a deadline.
    const { body } = await send('/orders', `Bearer ${tokens[0]}`)
    expect(JSON.parse(body)).toMatchObject({ status: 503, code: 'dependency_unavailable' })

    await set(PROMPT)
    await expect
      .poll(async () => counted(await burst(1)), { timeout: 60_000, interval: FIRST_PERIOD_MS })
      .toEqual({ 200: 1 })
    expect(counted(await burst(200))).toEqual({ 200: 200 })
  },
)
