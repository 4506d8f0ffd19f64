/** Gateways in this process with several origins, over a real Redis. */
import type { IncomingHttpHeaders, RequestListener } from 'node:http'
import type { AuditEvent } from '../../../src/audit/event.ts'
import type { Policy } from '../../../src/policy/policy.ts'
import { PUBLIC_URL, startGateway } from '../../harness/gateway.ts'
import { startHttpServer } from '../../harness/http-server.ts'

export { PUBLIC_URL }

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
  const gateways = await startGateway({ audience: [PUBLIC_URL, OTHER_AUDIENCE], signs: true })
  const { ORIGIN_URL: _, ...environment } = gateways.environment
  return {
    environment,
    token: (sub: string, claims: Readonly<Record<string, unknown>> = {}) =>
      gateways.token({ claims: { sub, ...claims } }),
    /**
     * Returns the function that sends a request to a gateway: a URL without its scheme. `events` gets the
     * audit events.
     */
    gateway(
      policy: Policy,
      env: Readonly<Record<string, unknown>> = {},
      events: AuditEvent[] = [],
    ) {
      const app = gateways.isolate(policy, { ORIGIN_URL: undefined, ...env }, { sink: events })
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
    close: gateways.close,
  }
}

export type World = Awaited<ReturnType<typeof startWorld>>
