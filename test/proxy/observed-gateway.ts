/**
 * The complete gateway as a Worker that reports the internal state of its one isolate to a test.
 */
import {
  type AuditEvent,
  composeServices,
  createGateway,
  definePolicy,
  type GatewayEnv,
} from '../../src/index.ts'

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
    { method: 'GET', path: '/single/:page', permission: 'pages:read', limits: ['generous'] },
  ],
})

/** The response of {@link ObservedGateway} at `/read-here`. */
export interface Observed {
  /** Requests of known callers that passed every stage before the origin. */
  readonly admitted: number
  /** Every decision in order: request id, decision and reason. */
  readonly decisions: readonly Pick<AuditEvent, 'requestId' | 'decision' | 'reason'>[]
}

interface Isolate {
  readonly observed: { admitted: number; decisions: Observed['decisions'][number][] }
  readonly app: ReturnType<typeof createGateway>
}

function build(env: GatewayEnv): Isolate {
  const observed: Isolate['observed'] = { admitted: 0, decisions: [] }
  const services = composeServices(env, policy)
  const app = createGateway(
    {
      ...services,
      auditSink: {
        record({ requestId, decision, reason }) {
          observed.decisions.push({ requestId, decision, reason })
        },
      },
      assertions: {
        async sign() {
          observed.admitted += 1
          return 'assertion'
        },
      },
    },
    policy,
  )
  return { observed, app }
}

let isolate: Isolate | undefined

export default {
  fetch(request: Request, env: GatewayEnv, context: ExecutionContext) {
    isolate ??= build(env)
    if (new URL(request.url).pathname === '/read-here') return Response.json(isolate.observed)
    return isolate.app.fetch(request, env, context)
  },
}
