/**
 * Two isolates of one gateway over a real Redis and a real origin, with tokens for its operators.
 */

import type { ChainableCommander } from 'ioredis'
import { expect } from 'vitest'
import type { TrailDatabase } from '../../../src/audit/sql/database.ts'
import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import { openapi } from '../../../src/features/openapi/index.ts'
import { operators } from '../../../src/features/operators/index.ts'
import { otlp } from '../../../src/features/otlp/index.ts'
import { plans } from '../../../src/features/plans/index.ts'
import { relations } from '../../../src/features/relations/index.ts'
import type { Gateway } from '../../../src/gateway/create-gateway.ts'
import type { PolicyDefinition } from '../../../src/policy/definition.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { PUBLIC_URL, startGateway as startWith } from '../../harness/gateway.ts'
import { createKey, ISSUER, mint, REMOTE_ISSUER, type TestKey } from '../../harness/issuer.ts'
import { LANE } from '../../harness/lanes.ts'
import { MODEL } from './relation-model.ts'
import { generateSigningJwk } from './signing-jwk.ts'

export { ISSUER, PUBLIC_URL, REMOTE_ISSUER }

export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests only compare the body
  readonly body: any
}

/**
 * The client address of requests without an explicit one. Refusals of all tests count against it.
 */
const ADDRESS = '192.0.2.1'

/** What refused calls may change. */
const UNCOUNTED = new RegExp(`^${LANE}(?:limit:operators|metrics:).*\\n?`, 'gm')

/** Returns the test policy with other relations, or other tenant issuers. */
export const policyOf = (
  changed: Pick<PolicyDefinition<string, string>, 'relations' | 'tenantIssuers' | 'features'>,
) =>
  definePolicy({
    abuse: { exempt: [ADDRESS] },
    tokens: { sessionSeconds: 2_592_000 },
    features: [operators(), authorizationServer(), openapi(), otlp()],
    roles: {
      reader: ['orders:read'],
      operator: ['portcullis:*'],
      auditor: ['portcullis:audit:read', 'portcullis:revocations:list'],
    },
    limits: {
      few: { limit: 2, windowSeconds: 3_600, by: 'subject', onUnavailable: 'deny' },
      anonymous: { limit: 2, windowSeconds: 3_600, by: 'address', onUnavailable: 'deny' },
      plan: plans({ plans: { free: '100/min', pro: '1000/min' }, default: 'free' }),
      shared: { limit: 9, windowSeconds: 60, by: 'tenant', onUnavailable: 'deny' },
      perPath: {
        limit: 9,
        windowSeconds: 60,
        by: ({ request }) => request.url,
        onUnavailable: 'allow',
      },
      operators: { limit: 10_000, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
    },
    routes: [
      { method: 'GET', path: '/orders', permission: 'orders:read' },
      { method: 'GET', path: '/few', permission: 'orders:read', limits: ['few'] },
      { method: 'GET', path: '/public', anonymous: true, limits: ['anonymous'] },
    ],
    ...changed,
  })

export const policy = policyOf({ relations: relations({ model: MODEL, issuers: [ISSUER] }) })

export interface GatewayOptions {
  readonly prefer?: 'auto' | 'embedded'
  readonly auditDb?: TrailDatabase
  /** False: the gateway has no signing keys. */
  readonly signs?: boolean
  readonly clients?: readonly object[]
  /** The trusted issuers. Default: both. */
  readonly issuers?: readonly string[]
  /** Variables of features. Default: none. */
  readonly variables?: Readonly<Record<string, string>>
  /** Default: {@link policy}. */
  readonly policy?: typeof policy
  /** `REDIS_PREFIX` of each isolate. Default: none is set. */
  readonly prefixes?: readonly [string | undefined, string | undefined]
}

export type TestGateway = Awaited<ReturnType<typeof startGateway>>

export async function startGateway(options: GatewayOptions = {}) {
  const remote = await createKey('remote')
  const trusts = (issuer: string, { publicJwk }: TestKey) => ({
    issuer,
    audience: PUBLIC_URL,
    jwks: { keys: [publicJwk] },
  })
  const own = options.policy ?? policy
  const { redis, requests, events, ...gateway } = await startWith({
    policy: own,
    redis: options.prefer === 'embedded' ? 'embedded' : 'rest',
    issuers: (idp) =>
      [trusts(ISSUER, idp), trusts(REMOTE_ISSUER, remote)].filter(
        ({ issuer }) => options.issuers?.includes(issuer) ?? true,
      ),
    variables: {
      ...(options.signs !== false && {
        SIGNING_KEYS: JSON.stringify({ keys: [generateSigningJwk('key-1')] }),
      }),
      ...(options.clients && { CLIENTS: JSON.stringify(options.clients) }),
      ...options.variables,
    },
    bindings: options.auditDb ? { AUDIT_DB: options.auditDb } : {},
  })
  const isolate = (under = own, prefix?: string) =>
    gateway.isolate(under, prefix === undefined ? {} : { REDIS_PREFIX: prefix })
  const [first, second] = options.prefixes ?? []
  const isolates: readonly [Gateway, Gateway] = [
    isolate(undefined, first),
    isolate(undefined, second),
  ]

  async function send(path: string, init: RequestInit = {}, at: 0 | 1 = 0): Promise<Reply> {
    const request = new Request(PUBLIC_URL + path, init)
    if (!request.headers.has('CF-Connecting-IP')) request.headers.set('CF-Connecting-IP', ADDRESS)
    return replyOf(await isolates[at].fetch(request))
  }

  const token = (claims: Record<string, unknown> = {}, issuer = ISSUER) =>
    mint(issuer === ISSUER ? gateway.key : remote, {
      claims: { iss: issuer, aud: PUBLIC_URL, ...claims },
    })
  const operator = await token({ sub: 'olga', roles: ['operator'] })

  /** Calls the operators' API. `as` is a bearer token. */
  async function admin(
    method: string,
    path: string,
    body?: unknown,
    { as = operator, at = 0 as 0 | 1, headers = {} } = {},
  ): Promise<Reply> {
    return send(
      `/-/admin${path}`,
      {
        method,
        headers: {
          ...(as && { Authorization: `Bearer ${as}` }),
          ...(body !== undefined && { 'Content-Type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      },
      at,
    )
  }

  /** Sends commands together, and returns their replies. */
  async function repliesOf(add: (pipeline: ChainableCommander) => void): Promise<unknown[]> {
    const pipeline = redis.direct.pipeline()
    add(pipeline)
    return ((await pipeline.exec()) ?? []).map(([error, reply]) => {
      if (error !== null) throw error
      return reply
    })
  }

  /** Returns the whole content of Redis as text, keys included. */
  async function dump(): Promise<string> {
    const keys = await redis.direct.keys('*')
    const types = await repliesOf((one) => {
      for (const key of keys) one.type(key)
    })
    const values = await repliesOf((one) => {
      for (const [at, key] of keys.entries())
        if (types[at] === 'string') one.get(key)
        else if (types[at] === 'hash') one.hgetall(key)
        else one.zrange(key, 0, -1, 'WITHSCORES')
    })
    const lines = keys.map((key, at) => `${key} ${JSON.stringify(values[at])}`)
    return lines.sort().join('\n')
  }

  /**
   * Returns the content of Redis without what refused calls may change: the operators' limits, which
   * count refusals too, and the metrics, which a gateway reports by its own clock.
   */
  const state = async () => (await dump()).replaceAll(UNCOUNTED, '')

  /** Expects 403 insufficient_permission, with an unchanged Redis and no change in the audit event. */
  async function expectRefused(
    method: string,
    path: string,
    body: object | undefined,
    as: string,
  ): Promise<void> {
    const before = await state()
    const reply = await admin(method, path, body, { as })
    expect(reply.status, `${method} ${path}: ${reply.text}`).toBe(403)
    expect(reply.body.code).toBe('insufficient_permission')
    expect(reply.headers.get('www-authenticate')).toContain('scope="portcullis:')
    expect(await state()).toBe(before)
    expect(events.at(-1)?.change).toBeUndefined()
  }

  return {
    redis,
    events,
    env: gateway.environment,
    isolate,
    send,
    token,
    operator,
    admin,
    originCalls: () => requests.length,
    /** Calls the API behind the gateway with a credential. */
    call: (credential: string, at: 0 | 1 = 0, path = '/orders') =>
      send(path, { headers: { Authorization: `Bearer ${credential}` } }, at),
    dump,
    state,
    expectRefused,
    close: gateway.close,
  }
}

async function replyOf(response: Response): Promise<Reply> {
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.includes('json') === true && text !== ''
  const body = isJson ? JSON.parse(text) : undefined
  return { status: response.status, headers: response.headers, text, body }
}
