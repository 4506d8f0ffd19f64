/**
 * Explanations and policy tests decide as a running gateway does: a server on Node over a real Redis, with an
 * origin that counts its requests. `EXPLAINED_REQUESTS=10000` compares that many requests.
 */
import { createServer, type IncomingHttpHeaders, request as sendHttp } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createIssuer, type Issuer, policyTester } from 'portcullis/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { AuditEvent } from '../../src/audit/event.ts'
import { composeServices, type GatewayEnv } from '../../src/gateway/compose-services.ts'
import { createGateway } from '../../src/gateway/create-gateway.ts'
import { createBackgroundWork } from '../../src/node/background-work.ts'
import { createListeners } from '../../src/node/request-listener.ts'
import { nodeRuntime } from '../../src/node/runtime.ts'
import type { Policy } from '../../src/policy/policy.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { type RandomRequest, randomPolicies } from './random-policies.ts'

const REQUESTS = Number(process.env.EXPLAINED_REQUESTS ?? 400)
const SEED = Number(process.env.EXPLAINED_SEED ?? 18)
const SETTLED_MS = 5_000

let redis: TestRedis
let origin: TestServer
let issuer: Issuer
let forger: Issuer
const received: { readonly path: string; readonly headers: IncomingHttpHeaders }[] = []

beforeAll(async () => {
  redis = await startTestRedis()
  issuer = await createIssuer()
  forger = await createIssuer()
  origin = await startHttpServer((request, response) => {
    received.push({ path: request.url ?? '', headers: request.headers })
    request.resume().on('end', () => response.end())
  })
})
afterAll(async () => {
  await redis?.close()
  await origin?.close()
})

/** A gateway on Node with an empty Redis. */
async function startServer(policy: Policy, number: number) {
  const variables = {
    REDIS_URL: redis.redisUrl,
    REDIS_TIMEOUT_MS: '5000',
    REDIS_PREFIX: `agreement-${number}:`,
    TRUSTED_PROXIES: '127.0.0.1/32',
    PUBLIC_URL: 'https://gateway.test',
    ORIGIN_URL: origin.url,
    ISSUERS: JSON.stringify([issuer.entry]),
  }
  const runtime = nodeRuntime(variables)
  await runtime.check()
  const services = composeServices(variables as unknown as GatewayEnv, policy, runtime)
  const events: AuditEvent[] = []
  const auditSink = { record: (event: AuditEvent) => void events.push(event) }
  const work = createBackgroundWork()
  const listeners = createListeners(createGateway({ ...services, auditSink }, policy), work)
  const server = createServer(listeners.request)
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo

  function send(method: string, path: string, headers: Record<string, string>, body?: string) {
    return new Promise<{ status: number | undefined; limits: unknown; text: string }>(
      (resolve, reject) => {
        const outgoing = sendHttp({ port, method, path, headers }, async (response) => {
          let text = ''
          for await (const chunk of response.setEncoding('utf8')) text += chunk
          resolve({ status: response.statusCode, limits: response.headers.ratelimit, text })
        })
        outgoing.on('error', reject).end(body)
      },
    )
  }

  return {
    async decide({ line, request: { as, headers, body, address = '' }, isForged }: RandomRequest) {
      const [method = '', target = ''] = line.split(' ')
      const fields: Record<string, string> = { ...headers, 'x-forwarded-for': address }
      if (as !== undefined)
        fields.authorization = `Bearer ${await (isForged ? forger : issuer).token(as)}`
      const text = typeof body === 'object' ? JSON.stringify(body) : (body as string | undefined)
      if (typeof body === 'object') fields['content-type'] ??= 'application/json'
      else if (text !== undefined) fields['content-type'] ??= 'text/plain;charset=UTF-8'
      if (text !== undefined) fields['content-length'] = String(Buffer.byteLength(text))
      received.length = 0
      events.length = 0
      // As a client sends it: without characters outside of ASCII.
      const path = target.replaceAll(/[^!-~]+/g, encodeURIComponent)
      const answer = await send(method, path, fields, text)
      await work.settled(SETTLED_MS)
      const event = events.at(-1)
      return {
        status: answer.status,
        decision: event?.decision,
        route: event?.route,
        reason: event?.reason,
        observed: event?.observed ?? [],
        limits: withoutTimes(answer.limits),
        reached: received.length,
        origin: received[0] && {
          path: received[0].path,
          headers: writtenHeaders(received[0].headers),
        },
      }
    },
    async close() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
      await runtime.close()
    },
  }
}

const withoutTimes = (limits: unknown) =>
  typeof limits === 'string' ? limits.replaceAll(/;t=\d+/g, '') : undefined

/** The headers that do not differ between two requests of a caller. The test server has no TLS. */
function writtenHeaders(headers: Readonly<Record<string, unknown>>) {
  const names = Object.keys(headers).filter((name) =>
    /^x-(?!request-id|forwarded-proto)|^content-type/.test(name),
  )
  return Object.fromEntries(names.sort().map((name) => [name, headers[name]]))
}

test(`${REQUESTS} random requests are decided by explain and by a policy test as by a server over Redis`, {
  timeout: 30_000 + REQUESTS * 100,
}, async () => {
  const reasons = new Map<string, number>()
  let compared = 0
  let number = 0
  for (const { policy, requests } of randomPolicies(REQUESTS, SEED)) {
    number += 1
    const server = await startServer(policy, number)
    const [explaining, testing] = [policyTester(policy), policyTester(policy)]
    for (const [index, random] of requests.entries()) {
      const { line, isForged } = random
      const { as, ...rest } = random.request
      const request = isForged ? { ...rest, token: await forger.token(as) } : random.request
      const real = await server.decide(random)
      const where = `policy ${number}, request ${index}: ${JSON.stringify(random)}`
      const explained = await explaining.explain(line, request)
      const { origin: forwarded } = explained
      expect(
        {
          ...real,
          limits: undefined,
          reached: real.reached,
          origin: real.origin && { ...real.origin, headers: withoutType(real.origin.headers) },
        },
        where,
      ).toEqual({
        status: explained.status,
        decision: explained.decision,
        route: explained.route,
        reason: explained.reason,
        observed: explained.observed,
        limits: undefined,
        reached: explained.decision === 'allow' ? 1 : 0,
        origin: forwarded
          ? { path: forwarded.path, headers: withoutType(writtenHeaders(forwarded.headers)) }
          : undefined,
      })
      // Only `banOffenders` and `limitBody` replace the response of a later stage.
      const blamed = explained.stages.filter(({ outcome }) => outcome !== 'passed')
      expect(blamed.at(-1), where).toEqual(explained.stages.at(-1))
      expect(['banOffenders', 'limitBody'], where).toEqual(
        expect.arrayContaining(blamed.slice(0, -1).map(({ stage }) => stage)),
      )
      const decision = await testing.request(line, request)
      expect(
        {
          status: decision.status,
          reason: decision.reason,
          route: decision.route,
          limits: withoutTimes(decision.response.headers.get('ratelimit') ?? undefined),
        },
        where,
      ).toEqual({
        status: real.status,
        reason: real.reason,
        route: real.route,
        limits: real.limits,
      })
      compared += 1
      const code = real.reason?.split(':')[0] ?? ''
      reasons.set(code, (reasons.get(code) ?? 0) + 1)
    }
    await server.close()
  }
  expect(compared).toBe(REQUESTS)
  expect([...reasons.keys()]).toEqual(
    expect.arrayContaining([
      ...['ok', 'missing_token', 'token_rejected', 'permission_missing', 'rate_limited'],
      ...['invalid_input', 'not_found', 'method_not_allowed', 'ambiguous_path'],
    ]),
  )
  if (process.env.EXPLAINED_REQUESTS !== undefined)
    console.log(`${compared} requests under ${number} policies`, Object.fromEntries(reasons))
})

/** `fetch` and Node name the type of a text body differently. */
function withoutType({ 'content-type': _, ...headers }: Readonly<Record<string, unknown>>) {
  return headers
}
