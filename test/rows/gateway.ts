/** A gateway in this process, over a real Redis and a real origin that records its requests. */

import type { Origin } from '../../src/origin/origin.ts'
import type { Policy } from '../../src/policy/policy.ts'
import { PUBLIC_URL, startGateway as startWith } from '../harness/gateway.ts'

export { PUBLIC_URL }

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
  const reached: string[] = []
  const { isolate, ...gateway } = await startWith({
    policy,
    origin(request, response) {
      reached.push(`${request.method} ${request.url}`)
      request.resume().on('end', () => response.end('[]'))
    },
  })
  const app = isolate(policy, {}, { services: instead ? { origin: instead } : {} })

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
    redis: gateway.redis,
    /** Requests that reached the origin, as method and path. */
    reached,
    /** Resolves to the status. */
    send,
    token: (claims: Record<string, unknown>) => gateway.token({ claims }),
    close: gateway.close,
  }
}
