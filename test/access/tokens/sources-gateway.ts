/** The complete gateway with a route for each way in which a token source matters. */

import { openapi } from '../../../src/features/openapi/index.ts'
import { operators } from '../../../src/features/operators/index.ts'
import {
  type AuditEvent,
  composeServices,
  createGateway,
  definePolicy,
  type GatewayEnv,
} from '../../../src/index.ts'
import { entry } from '../../origin/entry.ts'

const PERMISSION = 'orders:read'

const policy = definePolicy({
  roles: { reader: [PERMISSION] },
  limits: {
    generous: { limit: 10_000, windowSeconds: 600, by: 'subject', onUnavailable: 'deny' },
  },
  tokens: { sources: [{ header: 'Authorization' }, { header: 'X-API-Key' }] },
  features: [operators(), openapi()],
  routes: [
    { method: 'GET', path: '/public', anonymous: true, forwardCookies: true },
    { method: 'POST', path: '/public', anonymous: true },
    { method: 'GET', path: '/orders', permission: PERMISSION, limits: ['generous'] },
    { method: 'POST', path: '/orders', permission: PERMISSION, limits: ['generous'] },
    { method: 'DELETE', path: '/orders', permission: PERMISSION },
    { method: 'GET', path: '/cookies', permission: PERMISSION, forwardCookies: true },
    {
      method: 'GET',
      path: '/credentials',
      permission: PERMISSION,
      forwardAuthorization: true,
    },
    { method: 'GET', path: '/bound', permission: PERMISSION, dpop: true },
    {
      method: 'GET',
      path: '/socket',
      permission: PERMISSION,
      webSocketOrigins: ['https://gateway.test', 'https://app.test', 'https://evil.test'],
    },
  ],
})

/** What the gateway reports at `/read-here`. */
export type Reasons = readonly Pick<AuditEvent, 'decision' | 'reason'>[]

export default entry((env: GatewayEnv, runtime) => {
  const reasons: Reasons[number][] = []
  const services = composeServices(env, policy, runtime)
  const auditSink = {
    record: ({ decision, reason }: AuditEvent) => void reasons.push({ decision, reason }),
  }
  const app = createGateway({ ...services, auditSink }, policy)
  return {
    fetch(request, bindings, context) {
      if (new URL(request.url).pathname === '/read-here') return Response.json(reasons)
      return app.fetch(request, bindings, context)
    },
  }
})
