/**
 * Explanations have no effect: whatever the policy and the caller are, all of Redis is the same before and
 * after, and no origin and no provider of sign-in is called. `EFFECT_POLICIES=200` tries more policies.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { planRecordOf } from '../../../src/access/admission/plan-record.ts'
import { createRelationTuples } from '../../../src/access/relations/redis/tuples.ts'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { createApiKeys } from '../../../src/access/tokens/redis/api-keys.ts'
import { operators } from '../../../src/features/operators/index.ts'
import { plans } from '../../../src/features/plans/index.ts'
import { createPlanAssignments } from '../../../src/features/plans/redis/assignments.ts'
import { DEFAULT_TERMS, signIn } from '../../../src/features/sign-in/index.ts'
import type { Login } from '../../../src/features/sign-in/provider.ts'
import { createSessionStore } from '../../../src/features/sign-in/redis/session-store.ts'
import { SESSION_COOKIE } from '../../../src/features/sign-in/session.ts'
import { createSessions } from '../../../src/features/sign-in/sessions.ts'
import { composeServices, type GatewayEnv } from '../../../src/gateway/compose-services.ts'
import { createGateway, type Gateway } from '../../../src/gateway/create-gateway.ts'
import { WORKERS } from '../../../src/gateway/runtime.ts'
import { definePolicy, type Policy } from '../../../src/policy/policy.ts'
import { nodeRuntime } from '../../../src/runtimes/node/runtime.ts'
import { createProver, type Prover } from '../../../src/testing/prover.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { createKey, ISSUER, mint, type TestKey } from '../../harness/issuer.ts'
import { usualOrLong } from '../../harness/long.ts'
import { redisVars, startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { overResp } from '../../harness/redis-protocols.ts'
import {
  CALLERS,
  KINDS,
  type RandomCall,
  type RandomCaller,
  randomCases,
} from './effects-policies.ts'

const POLICIES = Number(process.env.EFFECT_POLICIES ?? usualOrLong(3, 6))
/** Their first policies have each kind of limit, and a ban. */
const SEEDS = { REST: 266, RESP: 338 }
const PUBLIC_URL = 'https://gateway.test'
const ADDRESS = '203.0.113.9'

let redis: TestRedis
let origin: TestServer
let provider: TestServer
let idp: TestKey
let forger: TestKey
let signing: TestKey
let prover: Prover
/** What reached the origin or the provider. */
const reached: string[] = []

beforeAll(async () => {
  redis = await startTestRedis()
  idp = await createKey('idp')
  forger = await createKey('idp')
  signing = await createKey('own')
  prover = await createProver()
  const answer = (name: string) => (request: IncomingMessage, response: ServerResponse) => {
    reached.push(`${name} ${request.url}`)
    response.setHeader('Content-Type', 'application/json')
    request.resume().on('end', () => response.end('{"jsonrpc":"2.0","id":1,"result":{}}'))
  }
  origin = await startHttpServer(answer('origin'))
  provider = await startHttpServer(answer('provider'))
})
afterAll(async () => {
  await Promise.all([origin, provider].map((server) => server?.close()))
  await redis?.close()
})

// Some policies have limits by tenant, and callers without one.
vi.spyOn(console, 'warn').mockImplementation(() => {})

/** Every key with its type, its content, and whether it ends. */
async function everythingIn(direct: Redis): Promise<Record<string, string>> {
  const all: Record<string, string> = {}
  for (const key of (await direct.keys('*')).sort()) {
    // Reports of metrics are sent some time after requests.
    if (key.startsWith('pc:metrics:')) continue
    const ends = (await direct.pttl(key)) >= 0 ? 'ends' : 'lasts'
    const content = await direct.dump(key)
    all[key] =
      `${ends} ${await direct.type(key)} ${content === null ? '' : await contentOf(direct, key)}`
  }
  return all
}

async function contentOf(direct: Redis, key: string): Promise<string> {
  switch (await direct.type(key)) {
    case 'hash':
      return JSON.stringify(Object.entries(await direct.hgetall(key)).sort())
    case 'zset':
      return JSON.stringify(await direct.zrange(key, 0, -1, 'WITHSCORES'))
    case 'set':
      return JSON.stringify((await direct.smembers(key)).sort())
    case 'list':
      return JSON.stringify(await direct.lrange(key, 0, -1))
    case 'stream':
      return JSON.stringify(await direct.xrange(key, '-', '+'))
    default:
      return (await direct.get(key)) ?? ''
  }
}

const variables = () => ({
  PUBLIC_URL,
  ORIGIN_URL: origin.url,
  SIGNING_KEYS: JSON.stringify({ keys: [signing.privateJwk] }),
  ISSUERS: JSON.stringify([
    { issuer: ISSUER, audience: PUBLIC_URL, jwks: { keys: [idp.publicJwk] } },
    { issuer: provider.url, audience: PUBLIC_URL },
  ]),
  ISSUER_CLIENTS: JSON.stringify([
    { issuer: provider.url, id: 'shop', secret: 'secret', signIn: { name: 'Example' } },
  ]),
})

/** The ways to Redis: of Workers and of Node. */
const RUNTIMES = {
  REST: () => ({ vars: { ...variables(), ...redisVars(redis) }, runtime: WORKERS }),
  RESP() {
    const vars = { ...variables(), REDIS_URL: redis.redisUrl, REDIS_TIMEOUT_MS: '5000' }
    const { redis: connect, environment } = nodeRuntime(vars)
    return { vars, runtime: { ...WORKERS, redis: connect, ...(environment && { environment }) } }
  },
}

async function startGateway(policy: Policy, on: keyof typeof RUNTIMES) {
  await redis.direct.flushall()
  const { vars, runtime } = RUNTIMES[on]()
  const services = composeServices(vars as unknown as GatewayEnv, policy, {
    ...runtime,
    addressOf: (c) => c.req.header('x-test-address') ?? ADDRESS,
  })
  const auditSink = { record() {} }
  const gateway = createGateway({ ...services, auditSink }, policy)
  const credentials = await createCredentials()
  const operator = await mint(idp, {
    claims: { aud: PUBLIC_URL, sub: 'olga', roles: ['operator'] },
  })
  return {
    send: (call: RandomCall) => send(gateway, call, credentials[call.caller]),
    async explain({ caller, method, path, body }: RandomCall) {
      const credential = credentials[caller]
      const headers = await headersOf(credential, method, path)
      const question = {
        method,
        path,
        address: ADDRESS,
        ...(body !== undefined && { body }),
        ...(caller === 'assumed'
          ? { caller: { subject: 'alice', issuer: ISSUER, roles: ['reader'], tenant: 'acme' } }
          : { headers: { ...headers, accept: 'text/html, application/json, text/event-stream' } }),
      }
      const response = await gateway.request(`${PUBLIC_URL}/-/admin/explanations`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${operator}`,
          'content-type': 'application/json',
          // The address of the callers may be banned.
          'x-test-address': '203.0.113.77',
        },
        body: JSON.stringify(question),
      })
      return { status: response.status, body: (await response.json()) as Explained }
    },
  }
}

interface Explained {
  readonly decision: string
  readonly reason: string
  readonly stages: readonly { readonly stage: string; readonly read: { limits?: unknown } }[]
}

type Credential = { readonly scheme: 'Bearer' | 'DPoP' | 'Cookie'; readonly text: string }

async function createCredentials(): Promise<Partial<Record<RandomCaller, Credential>>> {
  const connection = overResp(redis)
  const claims = { aud: PUBLIC_URL, sub: 'alice', tenant: 'acme' }
  const keys = createApiKeys({ redis: connection, publicUrl: PUBLIC_URL, now: Date.now })
  const described = { name: 'k', subject: 'robot', roles: ['reader'], tenant: 'acme' }
  const [key, pro] = [await keys.create(described, 'o'), await keys.create(described, 'o')]
  await createPlanAssignments(connection, Date.now).create({
    by: 'key',
    issuer: PUBLIC_URL,
    value: pro.key.id,
    plan: 'pro',
    windows: [await planRecordOf('key', PUBLIC_URL, pro.key.id)],
    createdBy: 'olga',
  })
  const bearer = (text: string) => ({ scheme: 'Bearer', text }) as const
  await createRelationTuples(connection, ['note', 'user']).write('acme', {
    writes: [{ object: 'note:1', relation: 'viewer', subject: 'user:alice' }],
    deletes: [],
  })
  return {
    bearer: bearer(await mint(idp, { claims })),
    other: bearer(await mint(idp, { claims: { ...claims, sub: 'bob', roles: [] } })),
    bound: {
      scheme: 'DPoP',
      text: await mint(idp, { claims: { ...claims, cnf: { jkt: prover.thumbprint } } }),
    },
    key: bearer(key.secret),
    pro: bearer(pro.secret),
    session: { scheme: 'Cookie', text: await openSession() },
    forged: bearer(await mint(forger, { claims })),
  }
}

/** A session whose renewal and whose provider's refresh are due. */
async function openSession(): Promise<string> {
  const now = () => Date.now() - 1_200_000
  const connection = overResp(redis)
  const nowSeconds = Math.floor(now() / 1000)
  const sessions = createSessions({
    store: createSessionStore(connection, now),
    revocations: createRevocations(connection, now),
    terms: { ...DEFAULT_TERMS, idleSeconds: 7_200, roles: ['reader'] },
    audience: PUBLIC_URL,
    now,
  })
  const login: Login = {
    principal: {
      issuer: provider.url,
      tokenIssuer: provider.url,
      subject: 'sara',
      client: 'shop',
      tenant: undefined,
      session: undefined,
      roles: [],
      scopes: [],

      tokenId: undefined,
      tokenIdHash: undefined,
      confirmation: undefined,
      issuedAtSeconds: nowSeconds,
      expiresAtSeconds: nowSeconds + 60,
    },
    tokens: { idToken: 'i', refreshToken: 'r' },
    refreshAtSeconds: nowSeconds + 60,
    providerSubject: 'sara',
    providerSession: undefined,
    facts: { authTimeSeconds: nowSeconds },
  }
  const seal = { close: async () => 'sealed', open: async () => undefined }
  return sessions.open(login, { seal }, 'browser')
}

async function headersOf(
  credential: Credential | undefined,
  method: string,
  path: string,
): Promise<Record<string, string>> {
  if (credential === undefined) return {}
  const { scheme, text } = credential
  if (scheme === 'Cookie') return { cookie: `${SESSION_COOKIE}=${text}` }
  if (scheme === 'Bearer') return { authorization: `Bearer ${text}` }
  const url = PUBLIC_URL + path
  const proof = { method, url, token: text, nonce: undefined, nowMs: Date.now() }
  return { authorization: `DPoP ${text}`, dpop: await prover.prove(proof) }
}

async function send(gateway: Gateway, call: RandomCall, credential: Credential | undefined) {
  const { method, path, body } = call
  const response = await gateway.request(PUBLIC_URL + path, {
    method,
    headers: {
      ...(await headersOf(credential, method, path)),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      accept: 'text/html, application/json, text/event-stream',
    },
    ...(body !== undefined && { body }),
  })
  await response.text()
  return response.status
}

describe.each(['REST', 'RESP'] as const)('explanations over %s', (on) => {
  test(`leave everything as it is, under ${POLICIES} random policies`, {
    timeout: 60_000 + POLICIES * 20_000,
  }, async () => {
    const seen = new Set<string>()
    const cases = randomCases(POLICIES, SEEDS[on])
    for (const { policy, sent, explained } of cases) {
      const gateway = await startGateway(policy, on)
      for (const call of sent) await gateway.send(call)
      // What requests do after their responses ends first.
      await settled()
      const before = await everythingIn(redis.direct)
      reached.length = 0
      for (const call of explained) {
        const { status, body } = await gateway.explain(call)
        expect([200, 404], JSON.stringify({ call, body })).toContain(status)
        seen.add(`${call.caller} ${body.decision}`).add(body.reason)
      }
      await settled()
      expect(await everythingIn(redis.direct)).toEqual(before)
      expect(reached).toEqual([])
    }
    // Each kind of limit was drawn, a ban was in force, and callers of every kind were admitted.
    expect(cases.flatMap(({ kinds }) => kinds)).toEqual(expect.arrayContaining([...KINDS]))
    expect([...seen]).toContainEqual(expect.stringMatching(/^banned:/))
    expect([...seen]).toEqual(expect.arrayContaining(['forged deny', 'other deny']))
    const admitted = [
      ...CALLERS.filter((caller) => caller !== 'forged' && caller !== 'other'),
      'assumed',
    ]
    expect([...seen]).toEqual(expect.arrayContaining(admitted.map((caller) => `${caller} allow`)))
  })

  test('judge an API key by its plan, and leave its only slot free', async () => {
    const of = { rate: '3/h', concurrency: 1 } as const
    const table = { free: of, pro: { ...of, rate: '50/h' } } as const
    const policy = definePolicy({
      roles: { reader: ['notes:read'], operator: ['portcullis:*'] },
      limits: {
        own: plans({ plans: table, default: 'free' }),
        shared: plans({ plans: table, default: 'free', by: () => 'everyone' }),
      },
      features: [operators(), signIn()],
      routes: [
        { method: 'GET', path: '/notes', permission: 'notes:read', limits: ['own', 'shared'] },
      ],
    })
    const gateway = await startGateway(policy, on)
    const call = { caller: 'pro', method: 'GET', path: '/notes', body: undefined } as const
    const limitsOf = ({ body }: { readonly body: Explained }) =>
      body.stages.find(({ stage }) => stage === 'admit')?.read.limits
    const left = (rate: number) => [
      { name: 'own', limit: 50, remaining: rate },
      { name: 'own-concurrency', limit: 1, remaining: 1 },
      { name: 'shared', limit: 50, remaining: rate },
      { name: 'shared-concurrency', limit: 1, remaining: 1 },
    ]
    expect(limitsOf(await gateway.explain(call))).toEqual(left(50))
    // The key is not cached yet: its record and its plan are looked up in the call that admits.
    expect(await gateway.send(call)).toBe(200)
    expect(limitsOf(await gateway.explain(call))).toEqual(left(49))
    expect(await gateway.send(call)).toBe(200)
    expect(limitsOf(await gateway.explain(call))).toEqual(left(48))
  })
})

/** Waits until Redis has been the same for a while. */
async function settled(): Promise<void> {
  let last = ''
  for (let same = 0; same < 2; ) {
    const now = JSON.stringify(await everythingIn(redis.direct))
    same = now === last ? same + 1 : 0
    last = now
    await new Promise((resolve) => setTimeout(resolve, 15))
  }
}
