/**
 * The whole gateway as it is shipped, in this process, over a real Redis, with its audit events.
 */

import type { AuditEvent } from '../../../src/audit/event.ts'
import { composeServices } from '../../../src/gateway/compose-services.ts'
import { createGateway } from '../../../src/gateway/create-gateway.ts'
import { WORKERS } from '../../../src/gateway/runtime.ts'
import type { definePolicy } from '../../../src/policy/policy.ts'
import { AUDIENCE, ISSUER, type TestKey } from '../../harness/issuer.ts'
import { lanesOfRun, portsOfLanes } from '../../harness/lanes.ts'
import { redisVars, type TestRedis } from '../../harness/redis.ts'

export const PUBLIC_URL = 'https://gateway.test'

export interface WholeGatewayOptions {
  readonly redis: TestRedis
  readonly originUrl: string
  /** The key of the one trusted issuer. */
  readonly key: TestKey
  readonly policy: ReturnType<typeof definePolicy>
  /** The deadline of one call to Redis. Default: that of `redisVars`. */
  readonly redisTimeoutMs?: number | undefined
}

export interface WholeGateway {
  /** In the order of the requests. */
  readonly events: AuditEvent[]
  /** Sends a request from an address, and waits for the work behind its response. */
  send(
    path: string,
    address: string,
    credential?: string,
    init?: { readonly method?: string; readonly headers?: object; readonly body?: string },
  ): Promise<Response>
}

/** Creates an isolate. Two isolates share only Redis. */
export function wholeGateway({
  redis,
  originUrl,
  key,
  policy,
  redisTimeoutMs,
}: WholeGatewayOptions): WholeGateway {
  const services = composeServices(
    {
      ...redisVars(redis, redisTimeoutMs),
      PUBLIC_URL,
      ORIGIN_URL: originUrl,
      ISSUERS: JSON.stringify([
        { issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [key.publicJwk] } },
      ]),
    },
    policy,
    { ...WORKERS, ...(lanesOfRun > 0 && portsOfLanes(lanesOfRun)) },
  )
  const events: AuditEvent[] = []
  const auditSink = { record: (event: AuditEvent) => void events.push(event) }
  const app = createGateway({ ...services, auditSink }, policy)
  return {
    events,
    async send(path, address, credential, init = {}) {
      const behind: Promise<unknown>[] = []
      const context = {
        waitUntil: (promise: Promise<unknown>) => void behind.push(promise),
        passThroughOnException() {},
        props: {},
      }
      const headers = {
        'cf-connecting-ip': address,
        ...(credential !== undefined && { authorization: `Bearer ${credential}` }),
        ...init.headers,
      }
      const url = `${PUBLIC_URL}${path}`
      const response = await app.request(url, { ...init, headers }, {}, context)
      await Promise.all(behind)
      return response
    },
  }
}
