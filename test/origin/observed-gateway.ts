/**
 * The complete gateway, which reports its internal state to a test.
 */
import {
  type AuditEvent,
  composeServices,
  createGateway,
  definePolicy,
  type GatewayEnv,
} from '../../src/index.ts'
import { entry } from './entry.ts'

const policy = definePolicy({
  roles: { reader: ['pages:read'] },
  limits: {
    generous: { limit: 10_000, windowSeconds: 600, by: 'subject', onUnavailable: 'deny' },
  },
  routes: [
    {
      method: 'GET',
      path: '/shared/:page',
      permission: 'pages:read',
      limits: ['generous'],
      coalesce: true,
    },
    {
      method: 'GET',
      path: '/single/:page',
      permission: 'pages:read',
      limits: ['generous'],
      // Longer than a response on a slow machine. Each further admission is a call to Redis.
      recheckSeconds: 600,
    },
  ],
})

/** The response at `/read-here`. */
export interface Observed {
  /** Requests of known callers that passed every stage before the origin. */
  readonly admitted: number
  /** Every decision in order: request id, decision and reason. */
  readonly decisions: readonly Pick<AuditEvent, 'requestId' | 'decision' | 'reason'>[]
}

export default entry((env: GatewayEnv, runtime) => {
  const decisions: Observed['decisions'][number][] = []
  let admitted = 0
  const services = composeServices(env, policy, runtime)
  const app = createGateway(
    {
      ...services,
      auditSink: {
        record({ requestId, decision, reason }) {
          decisions.push({ requestId, decision, reason })
        },
      },
      assertions: {
        async sign() {
          admitted += 1
          return 'assertion'
        },
      },
    },
    policy,
  )
  return {
    fetch(request, bindings, context) {
      if (new URL(request.url).pathname !== '/read-here')
        return app.fetch(request, bindings, context)
      return Response.json({ admitted, decisions } satisfies Observed)
    },
  }
})
