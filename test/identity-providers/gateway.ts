/** A gateway that only `ISSUERS` adapts to identity providers, with an origin that records its requests. */
import { expect } from 'vitest'
import { createRevocations } from '../../src/access/revocation/redis/revocations.ts'
import type { Revocations } from '../../src/access/revocation/revocation.ts'
import type { AuditEvent } from '../../src/audit/event.ts'
import type { GatewayEnv } from '../../src/gateway/compose-services.ts'
import type { AuthenticationDemand } from '../../src/policy/definition.ts'
import { definePolicy, type Policy } from '../../src/policy/policy.ts'
import { credentialHeader } from '../../src/testing/request.ts'
import type { TokenSource } from '../../src/validators/token-source.ts'
import { newAddress } from '../harness/address.ts'
import { PUBLIC_URL, startGateway } from '../harness/gateway.ts'
import type { TestRedis } from '../harness/redis.ts'

const basePolicy = definePolicy({
  roles: { reader: ['orders:read'], deployer: ['orders:read'], admin: ['orders:*'] },
  limits: {
    standard: { limit: 100_000, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
  },
  routes: [{ method: 'GET', path: '/orders', permission: 'orders:read', limits: ['standard'] }],
})

export interface ProviderGateway {
  /**
   * Sends a token to a route that requires one of the roles. Returns `200`, or the status with the
   * reason of the audit event. Fails if a refused request reached the origin. `source` is where the
   * token is sent; default `Authorization`.
   */
  outcomeOf(token: string, source?: TokenSource): Promise<string>
  /** Sends a token to the same route, with an `Authorization` header of this scheme. */
  send(token: string, scheme?: string): Promise<Response>
  /** The audit events so far. */
  readonly events: readonly AuditEvent[]
  /** Requests that reached the origin so far. */
  reached(): number
  readonly redis: TestRedis
  readonly revocations: Revocations
  close(): Promise<void>
}

interface ProviderGatewayOptions {
  /** Default: none. */
  readonly features?: Policy['features']
  /** What the route demands of a login. Default: nothing. */
  readonly authentication?: AuthenticationDemand
  /** Variables in addition. */
  readonly environment?: Partial<GatewayEnv>
}

/** Starts a gateway over a real Redis. `issuers` are the entries of `ISSUERS`. */
export async function startProviderGateway(
  issuers: readonly object[],
  { features = [], environment: more, authentication }: ProviderGatewayOptions = {},
): Promise<ProviderGateway> {
  const routes = basePolicy.routes.map((route) => ({ ...route, authentication }))
  const policy = { ...basePolicy, features, routes }
  const { requests, events, ...gateway } = await startGateway({
    issuers: () => issuers,
    bindings: more ?? {},
  })
  const { redis } = gateway
  const app = gateway.isolate(policy)
  return {
    async outcomeOf(token, source) {
      const before = requests.length
      const headers = { ...credentialHeader(token, source), 'cf-connecting-ip': newAddress() }
      const response = await app.fetch(new Request(`${PUBLIC_URL}/orders`, { headers }))
      await response.text()
      const isAllowed = response.status === 200
      expect(requests.length - before, 'requests that reached the origin').toBe(isAllowed ? 1 : 0)
      return isAllowed ? '200' : `${response.status} ${events.at(-1)?.reason}`
    },
    async send(token, scheme = 'Bearer') {
      const headers = { authorization: `${scheme} ${token}`, 'cf-connecting-ip': newAddress() }
      return app.fetch(new Request(`${PUBLIC_URL}/orders`, { headers }))
    },
    events,
    reached: () => requests.length,
    redis,
    revocations: createRevocations(gateway.connection, Date.now),
    close: gateway.close,
  }
}
