/** Gateways in this process with routes that require relations, over a real Redis that can fail. */

import type { IncomingHttpHeaders } from 'node:http'
import { compileModel } from '../../../../src/access/relations/compile-model.ts'
import type { RelationsDefinition } from '../../../../src/access/relations/definition.ts'
import { createRelationTuples } from '../../../../src/access/relations/redis/tuples.ts'
import { parseTuple, type RelationTuple } from '../../../../src/access/relations/tuple.ts'
import type { AuditEvent } from '../../../../src/audit/event.ts'
import { relations } from '../../../../src/features/relations/index.ts'
import type { GatewayEnv } from '../../../../src/gateway/compose-services.ts'
import type { RouteDefinition } from '../../../../src/policy/definition.ts'
import { definePolicy } from '../../../../src/policy/policy.ts'
import { PUBLIC_URL, sendTo, startGateway } from '../../../harness/gateway.ts'
import { ISSUER, REMOTE_ISSUER } from '../../../harness/issuer.ts'
import { MODEL } from './model.ts'

export { PUBLIC_URL }

const TYPES = [...compileModel(MODEL).types.keys()]

export const ROUTES: readonly RouteDefinition<'standard'>[] = [
  {
    method: 'GET',
    path: '/orders/:id',
    permission: 'orders:read',
    limits: ['standard'],
    relation: { object: 'order:{params.id}', relation: 'viewer' },
  },
  {
    method: 'POST',
    path: '/orders/:id/payment',
    permission: 'orders:read',
    relation: { object: 'order:{params.id}', relation: 'payer' },
  },
  {
    method: 'GET',
    path: '/watched/:id',
    permission: 'orders:read',
    relation: { object: 'order:{params.id}', relation: 'viewer', mode: 'observe' },
  },
  { method: 'GET', path: '/plain', permission: 'orders:read', limits: ['standard'] },
]

export interface GatewayOptions {
  readonly relations?: Partial<RelationsDefinition>
  readonly routes?: readonly RouteDefinition<'standard'>[]
  readonly policy?: object
  readonly env?: Partial<GatewayEnv>
}

export interface SendOptions {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: ReadableStream
  readonly signal?: AbortSignal
}

export type World = Awaited<ReturnType<typeof startWorld>>

/** A Redis, an origin that records its requests, and two issuers. */
export async function startWorld() {
  const reached: string[] = []
  const receivedHeaders: IncomingHttpHeaders[] = []
  const { redis, key, ...gateway } = await startGateway({
    origin(request, response) {
      receivedHeaders.push(request.headers)
      reached.push(`${request.method} ${request.url}`)
      request.resume().on('end', () => response.end('[]'))
    },
  })
  const issuerOf = (issuer: string) => ({
    issuer,
    audience: PUBLIC_URL,
    jwks: { keys: [key.publicJwk] },
  })
  const tuples = createRelationTuples(gateway.connection, TYPES)

  return {
    redis,
    /** Requests that reached the origin, as method and path. */
    reached,
    /** The headers of those requests. */
    receivedHeaders,
    tuples,
    /** Writes tuples such as `order:1#viewer@user:anne`. Returns the version after the write. */
    async write(tenant: string | null, ...texts: readonly string[]): Promise<number> {
      const { version } = await tuples.write(tenant, { writes: texts.map(tupleOf), deletes: [] })
      return version
    },
    async remove(tenant: string | null, ...texts: readonly string[]): Promise<number> {
      const { version } = await tuples.write(tenant, { writes: [], deletes: texts.map(tupleOf) })
      return version
    },
    token: (sub: string, claims: Readonly<Record<string, unknown>> = {}) =>
      gateway.token({ claims: { sub, ...claims } }),

    /** Creates an isolate. Isolates share only Redis. */
    isolate({
      relations: settings = {},
      routes = ROUTES,
      policy = {},
      env = {},
    }: GatewayOptions = {}) {
      const checked = definePolicy({
        roles: { reader: ['orders:read'] },
        limits: {
          standard: { limit: 1_000_000, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
        },
        routes,
        relations: relations({ model: MODEL, ...settings }),
        abuse: { bans: false },
        ...policy,
      })
      const events: AuditEvent[] = []
      const app = gateway.isolate(checked, env, { sink: events })
      async function send(path: string, token: string | undefined, options: SendOptions = {}) {
        const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
        const headers = { ...authorization, ...options.headers }
        // Node requires this for a body that is a stream.
        const half = options.body && { duplex: 'half' }
        const request = new Request(PUBLIC_URL + path, { ...options, headers, ...half })
        return await sendTo(app, request)
      }
      return {
        /** Audit events in the order of the requests. */
        events,
        send,
        async statusOf(
          path: string,
          token: string | undefined,
          options?: SendOptions,
        ): Promise<number> {
          const response = await send(path, token, options)
          await response.arrayBuffer()
          return response.status
        },
      }
    },
    /** The environment of a gateway that trusts two issuers. */
    twoIssuers: { ISSUERS: JSON.stringify([issuerOf(ISSUER), issuerOf(REMOTE_ISSUER)]) },
    close: gateway.close,
  }
}

export function tupleOf(text: string): RelationTuple {
  const tuple = parseTuple(text)
  if (tuple === undefined) throw new Error(`invalid tuple: ${text}`)
  return tuple
}
