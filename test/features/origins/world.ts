/** Gateways in this process with several origins, over a real Redis. */
import type { IncomingHttpHeaders, RequestListener } from 'node:http'
import type { AuditEvent } from '../../../src/audit/event.ts'
import { composeServices, type GatewayEnv } from '../../../src/gateway/compose-services.ts'
import { createGateway } from '../../../src/gateway/create-gateway.ts'
import type { Policy } from '../../../src/policy/policy.ts'
import { startHttpServer } from '../../harness/http-server.ts'
import { createKey, ISSUER, mint } from '../../harness/issuer.ts'
import { redisVars, startTestRedis } from '../../harness/redis.ts'

export const PUBLIC_URL = 'https://gateway.test'
const OTHER_AUDIENCE = 'https://orders.example.com'

export interface Received {
  readonly line: string
  readonly headers: IncomingHttpHeaders
}

export interface RecordingOrigin {
  readonly url: string
  /** The requests that reached it. */
  readonly received: Received[]
  close(): Promise<void>
}

/** Starts an origin that records its requests. `answer` default: its name, and a cookie of its own. */
export async function startOrigin(
  name: string,
  answer: RequestListener = (_, response) => {
    response.writeHead(200, { 'Set-Cookie': `${name}=1`, 'X-Made-By': name }).end(name)
  },
): Promise<RecordingOrigin> {
  const received: Received[] = []
  const server = await startHttpServer((request, response) => {
    received.push({ line: `${request.method} ${request.url}`, headers: request.headers })
    request.resume().on('end', () => answer(request, response))
  })
  return { url: server.url, received, close: server.close }
}

export interface SendOptions {
  readonly method?: string
  readonly token?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly address?: string
}

/** Starts a Redis and an issuer of tokens for two audiences. */
export async function startWorld() {
  const redis = await startTestRedis()
  await redis.direct.flushall()
  const key = await createKey('idp')
  const own = await createKey('own')
  const issuer = {
    issuer: ISSUER,
    audience: [PUBLIC_URL, OTHER_AUDIENCE],
    jwks: { keys: [key.publicJwk] },
  }
  const environment: GatewayEnv = {
    ...redisVars(redis),
    PUBLIC_URL,
    ISSUERS: JSON.stringify([issuer]),
    SIGNING_KEYS: JSON.stringify({ keys: [own.privateJwk] }),
  }
  return {
    environment,
    token: (sub: string, claims: Readonly<Record<string, unknown>> = {}) =>
      mint(key, { claims: { aud: PUBLIC_URL, sub, ...claims } }),
    /**
     * Returns the function that sends a request to a gateway: a URL without its scheme. `events` gets the
     * audit events.
     */
    gateway(
      policy: Policy,
      env: Readonly<Record<string, unknown>> = {},
      events: AuditEvent[] = [],
    ) {
      const services = composeServices({ ...environment, ...env } as GatewayEnv, policy)
      const auditSink = { record: (event: AuditEvent) => void events.push(event) }
      const app = createGateway({ ...services, auditSink }, policy)
      return async function send(
        target: string,
        { method = 'GET', token, headers, address = '192.0.2.1' }: SendOptions = {},
      ): Promise<Response> {
        const context = {
          waitUntil() {},
          passThroughOnException() {},
          props: {},
        }
        const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
        const request = new Request(`https://${target}`, {
          method,
          redirect: 'manual',
          headers: { 'cf-connecting-ip': address, ...authorization, ...headers },
        })
        return await app.fetch(request, {}, context)
      }
    },
    close: redis.close,
  }
}

export type World = Awaited<ReturnType<typeof startWorld>>
