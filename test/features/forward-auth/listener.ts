/** A gateway on Node with a decision endpoint, over a real Redis, and an origin that must not be reached. */
import { once } from 'node:events'
import { type IncomingMessage, request as send } from 'node:http'
import { text } from 'node:stream/consumers'
import * as z from 'zod'
import {
  type ForwardAuthDefinition,
  forwardAuth,
} from '../../../src/features/forward-auth/index.ts'
import { signIn } from '../../../src/features/sign-in/index.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { serve } from '../../../src/runtimes/node/serve.ts'
import { startHttpServer } from '../../harness/http-server.ts'
import { AUDIENCE, createKey, ISSUER, mint, type TokenOptions } from '../../harness/issuer.ts'
import { redisVars, startTestRedis } from '../../harness/redis.ts'

/** Where trusted proxies connect from, and another address of this machine. */
export const PROXY = '127.0.0.2'
export const STRANGER = '127.0.0.3'
export const CLIENT = '192.0.2.7'

export const policy = (definition?: ForwardAuthDefinition) =>
  definePolicy({
    roles: { reader: ['orders:read'], writer: ['orders:read', 'orders:write'] },
    limits: {
      standard: { limit: 1_000, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
      few: { limit: 2, windowSeconds: 60, by: 'address', onUnavailable: 'deny' },
    },
    features: [forwardAuth(definition), signIn()],
    routes: [
      { method: 'GET', path: '/public/ping', anonymous: true },
      { method: 'GET', path: '/orders', permission: 'orders:read', limits: ['standard'] },
      { method: 'GET', path: '/orders/:id', permission: 'orders:read', coalesce: true },
      { method: 'DELETE', path: '/orders/:id', permission: 'orders:write' },
      {
        method: 'POST',
        path: '/orders',
        permission: 'orders:write',
        input: { body: z.strictObject({ item: z.string() }) },
      },
      {
        method: 'POST',
        path: '/events',
        permission: 'orders:write',
        input: { body: z.strictObject({ item: z.string() }) },
      },
      { method: 'GET', path: '/pages/:name', permission: 'orders:read', session: 'browser' },
      { method: 'GET', path: '/few', anonymous: true, limits: ['few'] },
      { method: 'GET', path: '/admin/users', permission: 'orders:write' },
      {
        method: 'GET',
        path: '/socket',
        permission: 'orders:read',
        webSocketOrigins: ['https://app.test'],
      },
    ],
  })

export interface AuthorizationRequest {
  readonly method?: string
  readonly path?: string
  readonly headers?: readonly (readonly [name: string, value: string])[]
  /** The address of the proxy. Default {@link PROXY}. */
  readonly from?: string
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

export type Listener = Awaited<ReturnType<typeof startListener>>

export async function startListener(definition?: ForwardAuthDefinition, trusted = PROXY) {
  const redis = await startTestRedis()
  await redis.direct.flushall()
  const reached: IncomingMessage[] = []
  const origin = await startHttpServer((incoming, response) => {
    reached.push(incoming)
    incoming.resume()
    response.end('[]')
  })
  const key = await createKey('idp')
  const own = await createKey('own')
  const issuers = [{ issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [key.publicJwk] } }]
  const env = {
    ...redisVars(redis),
    PUBLIC_URL: 'https://gateway.test',
    ORIGIN_URL: origin.url,
    ISSUERS: JSON.stringify(issuers),
    ISSUER_CLIENTS: JSON.stringify([
      { issuer: ISSUER, id: 'gateway', secret: 'a-secret-of-a-test', signIn: { name: 'Test' } },
    ]),
    SIGNING_KEYS: JSON.stringify({ keys: [own.privateJwk] }),
    TRUSTED_PROXIES: trusted,
    FORWARD_AUTH_PORT: '0',
    PORT: '0',
  }
  const server = await serve({ policy: policy(definition), env })
  const listenerUrl = server.listeners[0]?.url ?? ''

  async function authorize(
    { method = 'GET', path = '/-/decide', headers = [], from = PROXY }: AuthorizationRequest,
    base = listenerUrl,
  ): Promise<Answer> {
    const { hostname, port } = new URL(base)
    const request = send({
      host: hostname,
      port,
      method,
      path,
      // One list: the order and the spelling of names stay.
      headers: [...(headers.some(([name]) => name === 'Host') ? [] : OWN_HOST), ...headers].flat(),
      localAddress: from,
      agent: false,
    }).end()
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    const body = await text(response)
    return { status: response.statusCode ?? 0, headers: response.headers, body }
  }

  return {
    url: server.url,
    listenerUrl,
    redis,
    reached,
    originUrl: origin.url,
    authorize,
    bearer: async (options: TokenOptions = {}) => `Bearer ${await mint(key, options)}`,
    async close() {
      await server.close()
      await origin.close()
      await redis.close()
    },
  }
}

const OWN_HOST = [['Host', 'portcullis:8788']] as const

type Fields = readonly (readonly [string, string])[]

/** A request of a client, as it reached the proxy. */
export interface Described {
  readonly method?: string
  readonly target: string
  readonly headers?: Fields
  readonly host?: string
}

/** The documented authorization request of each proxy about a request, with the headers of its client. */
export const PROXIES: Readonly<Record<string, (described: Described) => AuthorizationRequest>> = {
  traefik: ({ method = 'GET', target, headers = [], host = 'api.test' }) => ({
    headers: [
      ['Host', 'portcullis:8788'],
      ...headers,
      ['X-Forwarded-For', CLIENT],
      ['X-Forwarded-Host', host],
      ['X-Forwarded-Method', method],
      ['X-Forwarded-Port', '443'],
      ['X-Forwarded-Proto', 'https'],
      ['X-Forwarded-Uri', target],
      ['Accept-Encoding', 'gzip'],
    ],
  }),
  caddy: ({ method = 'GET', target, headers = [], host = 'api.test' }) => ({
    headers: [
      ['Host', 'portcullis:8788'],
      ...headers,
      ['X-Forwarded-For', CLIENT],
      ['X-Forwarded-Host', host],
      ['X-Forwarded-Proto', 'https'],
      ['X-Forwarded-Method', method],
      ['X-Forwarded-Uri', target],
    ],
  }),
  nginx: ({ method = 'GET', target, headers = [], host = 'api.test' }) => ({
    headers: [
      ['Host', host],
      ...headers,
      ['X-Forwarded-For', CLIENT],
      ['X-Original-Method', method],
      ['X-Original-URL', `https://${host}${target}`],
    ],
  }),
  envoy: ({ method = 'GET', target, headers = [], host = 'api.test' }) => ({
    method,
    path: `/-/decide${target}`,
    headers: [
      ['Host', host],
      ...headers,
      ['X-Forwarded-For', CLIENT],
      ['X-Forwarded-Proto', 'https'],
      ['Content-Length', '0'],
    ],
  }),
}
