/**
 * Explanations and policy tests decide as a running gateway does: a server on Node over a real Redis, with
 * origins that count their requests. Callers have tokens, DPoP proofs or API keys, and relations. `EXPLAINED_REQUESTS=10000` compares that many requests.
 */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, request as sendHttp } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  createIssuer,
  type Issuer,
  type PolicyTesterOptions,
  type PolicyTestRow,
  policyTest,
  policyTester,
  type TestedApiKey,
} from 'portcullis/testing'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { createRelationTuples } from '../../../src/access/relations/redis/tuples.ts'
import { formatTuple } from '../../../src/access/relations/tuple.ts'
import { newApiKey } from '../../../src/access/tokens/api-key.ts'
import { createReferenceStore } from '../../../src/access/tokens/redis/references.ts'
import { credentialHash } from '../../../src/access/tokens/reference.ts'
import type { AuditEvent } from '../../../src/audit/event.ts'
import { composeServices, type GatewayEnv } from '../../../src/gateway/compose-services.ts'
import { createGateway } from '../../../src/gateway/create-gateway.ts'
import type { Policy } from '../../../src/policy/policy.ts'
import { createKeys } from '../../../src/redis/keys.ts'
import { createBackgroundWork } from '../../../src/runtimes/node/background-work.ts'
import { createListeners } from '../../../src/runtimes/node/request-listener.ts'
import { nodeRuntime } from '../../../src/runtimes/node/runtime.ts'
import { createProver, type Prover } from '../../../src/testing/prover.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { createKey } from '../../harness/issuer.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { overResp } from '../../harness/redis-protocols.ts'
import { type RandomRequest, randomPolicies, TENANTS, TUPLES } from './random-policies.ts'

const REQUESTS = Number(process.env.EXPLAINED_REQUESTS ?? 400)
const SEED = Number(process.env.EXPLAINED_SEED ?? 18)
const SETTLED_MS = 5_000
const PUBLIC_URL = 'https://gateway.test'

let redis: TestRedis
let origins: readonly (TestServer & { readonly name: string })[]
let issuer: Issuer
let forger: Issuer
let prover: Prover
let signingKey: Awaited<ReturnType<typeof createKey>>
const received: {
  readonly origin: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
}[] = []

/** The gateway has the origins of the policy, and `plain` for routes without one. */
const startOrigin = async (name: string) => ({
  name,
  ...(await startHttpServer((request, response) => {
    received.push({ origin: name, path: request.url ?? '', headers: request.headers })
    request.resume().on('end', () => response.end())
  })),
})
const urlOf = (name: string) => origins.find((origin) => origin.name === name)?.url ?? ''
const isFact = new Set(TUPLES.map(formatTuple))

beforeAll(async () => {
  redis = await startTestRedis()
  issuer = await createIssuer()
  forger = await createIssuer()
  prover = await createProver()
  signingKey = await createKey('own')
  origins = await Promise.all(['plain', 'red', 'blue'].map(startOrigin))
})
afterAll(async () => {
  await redis?.close()
  await Promise.all((origins ?? []).map((origin) => origin.close()))
})

let servers = 0

/** A gateway on Node that has seen no request, with keys of its own in Redis. */
async function startServer(policy: Policy) {
  servers += 1
  const prefix = `agreement-${servers}:`
  const variables = {
    REDIS_URL: redis.redisUrl,
    REDIS_TIMEOUT_MS: '5000',
    REDIS_PREFIX: prefix,
    TRUSTED_PROXIES: '127.0.0.1/32',
    PUBLIC_URL,
    ORIGIN_URL: urlOf('plain'),
    // Only a gateway with a key has nonces.
    ...(policy.tokens.dpopNonceRequired && {
      SIGNING_KEYS: JSON.stringify({ keys: [signingKey.privateJwk] }),
    }),
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
  const connection = { ...overResp(redis), keys: createKeys(prefix) }
  const references = createReferenceStore(connection)
  if (policy.relations !== undefined) {
    const tuples = createRelationTuples(connection, ['item', 'user'])
    for (const tenant of TENANTS) await tuples.write(tenant, { writes: TUPLES, deletes: [] })
  }

  async function keyOf({ sub, roles = [], scope = [], tenant }: TestedApiKey): Promise<string> {
    const key = newApiKey()
    await references.put(await credentialHash(key), {
      kind: 'api_key',
      key: randomUUID(),
      tokenId: randomUUID(),
      tokenIssuer: PUBLIC_URL,
      issuer: PUBLIC_URL,
      subject: sub,
      tenant,
      roles: [...roles],
      scopes: [...scope],
      audiences: [PUBLIC_URL],
      issuedAtSeconds: Math.floor(Date.now() / 1000),
      expiresAtSeconds: null,
    })
    return key
  }

  function newCredential({ request: { as, apiKey, dpop }, isForged }: RandomRequest) {
    if (apiKey !== undefined) return keyOf(apiKey)
    if (as === undefined) return undefined
    const bound = { ...as, claims: { cnf: { jkt: prover.thumbprint }, ...as.claims } }
    return (isForged ? forger : issuer).token(dpop === true ? bound : as)
  }
  const credentials = new Map<string, Promise<string> | undefined>()

  /** Equal callers have the same credential: a gateway checks a known one in another way. */
  function credentialOf(random: RandomRequest) {
    if (random.isForged) return newCredential(random)
    const { as, apiKey, dpop } = random.request
    const name = JSON.stringify([as, apiKey, dpop])
    const credential = credentials.get(name) ?? newCredential(random)
    credentials.set(name, credential)
    return credential
  }

  async function proofFor(method: string, path: string, token: string) {
    const nonce = policy.tokens.dpopNonceRequired ? await services.proofs.nonce() : undefined
    const url = PUBLIC_URL + new URL(path, PUBLIC_URL).pathname
    return prover.prove({ method, url, token, nonce, nowMs: Date.now() })
  }

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
    async decide(random: RandomRequest) {
      const { host = 'gateway.test', headers, body, address = '', dpop } = random.request
      const [method = '', target = ''] = random.line.split(' ')
      // As a client sends it: without characters outside of ASCII.
      const path = target.replaceAll(/[^!-~]+/g, encodeURIComponent)
      const fields: Record<string, string> = { host, ...headers, 'x-forwarded-for': address }
      const token = await credentialOf(random)
      if (token !== undefined) {
        fields.authorization = `${dpop ? 'DPoP' : 'Bearer'} ${token}`
        if (dpop) fields.dpop = await proofFor(method, path, token)
      }
      const text = typeof body === 'object' ? JSON.stringify(body) : (body as string | undefined)
      if (typeof body === 'object') fields['content-type'] ??= 'application/json'
      else if (text !== undefined) fields['content-type'] ??= 'text/plain;charset=UTF-8'
      if (text !== undefined) fields['content-length'] = String(Buffer.byteLength(text))
      received.length = 0
      events.length = 0
      const answer = await send(method, path, fields, text)
      await work.settled(SETTLED_MS)
      const event = events.at(-1)
      return {
        status: answer.status,
        code: codeOf(answer.text),
        decision: event?.decision,
        route: event?.route,
        reason: event?.reason,
        observed: event?.observed ?? [],
        limits: withoutTimes(answer.limits),
        reached: received.length,
        origin: received[0] && {
          name: received[0].origin,
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

/** A response without a body, such as the one to HEAD, has no code. */
const codeOf = (text: string): string | undefined =>
  text === '' ? undefined : (JSON.parse(text) as { readonly code: string }).code

const withoutTimes = (limits: unknown) =>
  typeof limits === 'string' ? limits.replaceAll(/;t=\d+/g, '') : undefined

/** The headers that do not differ between two requests of a caller. The test server has no TLS. */
function writtenHeaders(headers: Readonly<Record<string, unknown>>) {
  const names = Object.keys(headers).filter((name) =>
    /^x-(?!request-id|forwarded-proto|forwarded-port|auth-assertion)|^content-type/.test(name),
  )
  return Object.fromEntries(names.sort().map((name) => [name, headers[name]]))
}

// Policies with an audience that no issuer has are among them.
vi.spyOn(console, 'warn').mockImplementation(() => {})

test(`${REQUESTS} random requests are decided by explain and by a policy test as by a server over Redis`, {
  timeout: 60_000 + REQUESTS * 300,
}, async () => {
  const reasons = new Map<string, number>()
  const urls = { red: urlOf('red'), blue: urlOf('blue') }
  const allowedBy = new Map<string, number>()
  let compared = 0
  let tested = 0
  let number = 0
  // A gateway caches for some seconds that a limit is used up. The clock of a policy test does not advance, so it
  // caches that for ever. The gateway of this test has such a clock too.
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  for (const { policy, requests } of randomPolicies(REQUESTS, SEED, urls)) {
    number += 1
    const server = await startServer(policy)
    const rows: PolicyTestRow[] = []
    let called: string | undefined
    const options: PolicyTesterOptions = {
      relations: (query) => isFact.has(formatTuple(query)),
      origin({ url }) {
        called = origins.find((origin) => url.startsWith(`${origin.url}/`))?.name ?? 'plain'
        return new Response()
      },
    }
    const [explaining, testing] = [policyTester(policy, options), policyTester(policy, options)]
    for (const [index, random] of requests.entries()) {
      const { line, isForged } = random
      const { as, ...rest } = random.request
      const request = isForged ? { ...rest, token: await forger.token(as) } : random.request
      const real = await server.decide(random)
      const where = `policy ${number}, request ${index}: ${JSON.stringify(random)}`
      called = undefined
      const explained = await explaining.explain(line, request)
      const { origin: forwarded } = explained
      expect(
        {
          ...real,
          code: undefined,
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
          ? {
              name: called,
              path: forwarded.path,
              headers: withoutType(writtenHeaders(forwarded.headers)),
            }
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
      rows.push({ ...request, request: line, expect: await decidedAlone(policy, random) })
      compared += 1
      if (real.decision === 'allow')
        for (const kind of kindsOf(random, real.origin?.name))
          allowedBy.set(kind, (allowedBy.get(kind) ?? 0) + 1)
      const code = real.reason?.split(':')[0] ?? ''
      reasons.set(code, (reasons.get(code) ?? 0) + 1)
    }
    await server.close()
    await policyTest(policy, rows, options)
    tested += rows.length
  }
  expect(tested).toBe(REQUESTS)
  expect(compared).toBe(REQUESTS)
  expect([...reasons.keys()]).toEqual(
    expect.arrayContaining([
      ...['ok', 'missing_token', 'token_rejected', 'permission_missing', 'rate_limited'],
      ...['invalid_input', 'not_found', 'method_not_allowed', 'ambiguous_path'],
      ...['relation_missing', 'invalid_dpop_proof'],
    ]),
  )
  expect(reasons.get('ok')).toBeGreaterThan(REQUESTS / 3)
  expect([...allowedBy.keys()].sort()).toEqual(
    ['anonymous', 'API key', 'token', 'DPoP', 'plain', 'red', 'blue'].sort(),
  )
  if (process.env.EXPLAINED_REQUESTS !== undefined)
    console.log(
      `${compared} requests under ${number} policies, ${tested} rows`,
      Object.fromEntries(reasons),
      {
        allowed: Object.fromEntries(allowedBy),
      },
    )
})

/**
 * Returns what a new gateway decides: its limits, bans and caches are empty. So are those of each row
 * of a policy test.
 */
async function decidedAlone(
  policy: Policy,
  random: RandomRequest,
): Promise<PolicyTestRow['expect']> {
  const server = await startServer(policy)
  const { status = 0, decision, code } = await server.decide(random)
  await server.close()
  return decision === 'allow' ? 'allowed' : ((code as PolicyTestRow['expect']) ?? status)
}

/** What an allowed request shows: how its caller is identified, and the origin that it reached. */
function kindsOf({ request: { as, apiKey, dpop } }: RandomRequest, origin = ''): string[] {
  if (dpop) return ['DPoP', origin]
  if (apiKey !== undefined) return ['API key', origin]
  return [as === undefined ? 'anonymous' : 'token', origin]
}

/** `fetch` and Node name the type of a text body differently. */
function withoutType({ 'content-type': _, ...headers }: Readonly<Record<string, unknown>>) {
  return headers
}
