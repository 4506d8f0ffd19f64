/** The gateway Worker: runs the standard pipeline with one policy. */
import type { ExecutionContext } from 'hono'
import type { AuditEvent } from '../../audit/event.ts'
import { composeServices, type GatewayEnv, tasksOf } from '../../gateway/compose-services.ts'
import { createGateway } from '../../gateway/create-gateway.ts'
import type { Task } from '../../gateway/feature.ts'
import { refuseAll } from '../../gateway/refuse-all.ts'
import { WORKERS } from '../../gateway/runtime.ts'
import { type Policy, requirePolicy } from '../../policy/policy.ts'

/** The context that the platform passes with a request: the part that is used. */
export interface WorkerContext {
  waitUntil(work: Promise<unknown>): void
  passThroughOnException(): void
}

export interface GatewayWorker {
  fetch(request: Request, env: GatewayEnv, context: WorkerContext): Response | Promise<Response>
  /** Runs the work of features without a request. Needs a cron trigger; see docs/signals.md. */
  scheduled(schedule: unknown, env: GatewayEnv, context: WorkerContext): Promise<void>
}

/**
 * Returns the gateway Worker, for the default export of its module. Throws `Misconfigured` if the
 * value is no policy, so that the module does not load. An isolate that has an invalid environment
 * answers everything with the problem `misconfigured`.
 *
 * @example
 * ```ts
 * import { gatewayWorker } from 'portcullis/cloudflare'
 * import policy from './portcullis.config.ts'
 *
 * export default gatewayWorker(policy)
 * ```
 */
export function gatewayWorker(policy: Policy): GatewayWorker {
  requirePolicy(policy)
  /** Created on the first request of an isolate. The environment never changes within an isolate. */
  let gateway: Built | undefined
  return {
    fetch(request, env, context) {
      gateway ??= buildGateway(env, policy)
      return gateway.app.fetch(request, env, context as ExecutionContext)
    },
    async scheduled(_, env, context) {
      gateway ??= buildGateway(env, policy)
      await Promise.all(gateway.tasks.map((task) => task.run((work) => context.waitUntil(work))))
    },
  }
}

interface Built {
  readonly app: Pick<ReturnType<typeof refuseAll>, 'fetch'>
  readonly tasks: readonly Task[]
}

/** `npm start` and `portcullis dev` read these lines. They see warnings only. */
function logDecision(event: AuditEvent, path: string): void {
  console.warn(JSON.stringify({ ...event, path }))
}

function buildGateway(env: GatewayEnv, policy: Policy): Built {
  try {
    const runtime = env.DECISION_LOG === 'on' ? { ...WORKERS, decided: logDecision } : WORKERS
    const services = composeServices(env, policy, runtime)
    return { app: createGateway(services, policy), tasks: tasksOf(services) }
  } catch (error) {
    return { app: refuseAll(error), tasks: [] }
  }
}
