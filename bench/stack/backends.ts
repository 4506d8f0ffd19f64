/** Starts the dependencies of the measured gateway: an origin, a queue, and Redis. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { type Child, startChild } from '../processes/child.ts'

export const ORIGIN_BODY = '{"items":[{"id":"0190a6b4-0000-7000-8000-000000000001"}]}'

const REST_TOKEN_BYTES = 32

export interface OriginCounts {
  readonly requests: number
  /** Requests with `X-Auth-Subject`. */
  readonly identified: number
  /** Requests with `X-Auth-Assertion`. */
  readonly asserted: number
  /** Messages of the audit queue; counted only if the queue is bound to this process. */
  readonly auditEvents: number
}

export interface RedisCounts {
  /** HTTP calls to the REST server, without those after responses. */
  readonly calls: number
}

export type Counts = OriginCounts & RedisCounts

export interface Backends {
  readonly originUrl: string
  readonly redis: {
    readonly url: string
    readonly token: string
    readonly kind: string
    /** URL of Redis itself, without the REST server: `redis://...`. */
    readonly directUrl: string
    /** Process of the REST server. Redis is this process or a child of it. */
    readonly pid: number
  }
  counts(): Promise<Counts>
  close(): Promise<void>
}

/** Starts both processes. Throws an `Error` of one line if one of them does not start. */
export async function startBackends(): Promise<Backends> {
  const token = randomBytes(REST_TOKEN_BYTES).toString('base64url')
  const start = <Ready>(file: string, env = {}): Promise<Child<Ready>> =>
    startChild(join(import.meta.dirname, file), env)
  const [origin, rest] = await Promise.all([
    start<{ readonly url: string }>('origin.ts'),
    start<Pick<Backends['redis'], 'url' | 'kind' | 'directUrl'>>('redis-rest.ts', {
      REST_TOKEN: token,
    }),
  ])
  return {
    originUrl: origin.ready.url,
    redis: { ...rest.ready, token, pid: rest.pid },
    async counts() {
      const [atOrigin, atRedis] = await Promise.all([
        origin.call<OriginCounts>({}),
        rest.call<RedisCounts>({}),
      ])
      return { ...atOrigin, ...atRedis }
    },
    async close() {
      await Promise.all([origin.close(), rest.close()])
    },
  }
}

export function countsBetween(before: Counts, after: Counts): Counts {
  return {
    requests: after.requests - before.requests,
    identified: after.identified - before.identified,
    asserted: after.asserted - before.asserted,
    auditEvents: after.auditEvents - before.auditEvents,
    calls: after.calls - before.calls,
  }
}
