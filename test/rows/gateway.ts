/** A gateway in this process, over a real Redis and a real origin that records its requests. */

import { composeServices } from '../../src/gateway/compose-services.ts'
import { createGateway } from '../../src/gateway/create-gateway.ts'
import type { Origin } from '../../src/origin/origin.ts'
import type { Policy } from '../../src/policy/policy.ts'
import { startHttpServer } from '../harness/http-server.ts'
import { createKey, ISSUER, mint } from '../harness/issuer.ts'
import { redisVars, startTestRedis } from '../harness/redis.ts'

export const PUBLIC_URL = 'https://gateway.test'

/**
 * One request; `address` is the client address that the platform reports, undefined if it reports
 * none.
 */
export interface Sent {
  readonly method?: string
  readonly path: string
  readonly token?: string | undefined
  readonly address?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | undefined
}

export type TestGateway = Awaited<ReturnType<typeof startGateway>>

/** `instead` replaces the recording origin. */
export async function startGateway(policy: Policy, instead?: Origin) {
  const redis = await startTestRedis()
  await redis.direct.flushall()
  const reached: string[] = []
  const origin = await startHttpServer((request, response) => {
    reached.push(`${request.method} ${request.url}`)
    request.resume().on('end', () => response.end('[]'))
  })
  const key = await createKey('idp')
  const services = composeServices(
    {
      ...redisVars(redis),
      PUBLIC_URL,
      ORIGIN_URL: origin.url,
      ISSUERS: JSON.stringify([
        { issuer: ISSUER, audience: PUBLIC_URL, jwks: { keys: [key.publicJwk] } },
      ]),
    },
    policy,
  )
  const app = createGateway(
    { ...services, auditSink: { record: () => undefined }, origin: instead ?? services.origin },
    policy,
  )

  async function send(sent: Sent): Promise<number> {
    const { method = 'GET', path, token, address, headers = {}, body } = sent
    const request = new Request(PUBLIC_URL + path, {
      method,
      headers: {
        ...headers,
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(address !== undefined && { 'cf-connecting-ip': address }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body }),
    })
    const response = await app.fetch(request)
    await response.text()
    return response.status
  }

  return {
    redis,
    /** Requests that reached the origin, as method and path. */
    reached,
    /** Resolves to the status. */
    send,
    token: (claims: Record<string, unknown>) =>
      mint(key, { claims: { aud: PUBLIC_URL, ...claims } }),
    async close() {
      await origin.close()
      await redis.close()
    },
  }
}
