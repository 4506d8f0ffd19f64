/** The metrics, for Prometheus. */
import type { Context } from 'hono'
import * as z from 'zod/mini'
import { Denied } from '../../errors.ts'
import { NO_STORE } from '../../http/response-headers.ts'
import { createSharedReading } from '../../isolate/shared-reading.ts'
import { callerOf } from '../../middleware/context.ts'
import { EXPOSITION_MEDIA_TYPE } from '../../observability/metrics/exposition.ts'
import { completeRoute } from '../../policy/route.ts'
import type { Config } from '../../validators/environment.ts'
import type { AdminCall } from './call.ts'
import { permissionOf } from './permissions.ts'

export interface MetricsOptions {
  readonly text: () => Promise<string>
  readonly metricsAccess: Config['metricsAccess']
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** The route may be public, so frequent requests must not cause more calls. */
const MEMORY_MS = 1_000
/** After this time, the request that reads counts as dead. */
const LEASE_MS = 3_000
const METRICS_PATH = '/-/metrics'

/**
 * Creates `GET /-/metrics`: the metrics of all isolates of all gateways on this Redis. An isolate
 * reads them at most once a second. The guards before it are those of any route.
 */
export function metricsCall({ text, metricsAccess, now }: MetricsOptions): AdminCall {
  const reading = createSharedReading({
    read: text,
    now,
    memoryMs: MEMORY_MS,
    leaseMs: LEASE_MS,
  })
  const permission = metricsAccess === 'public' ? undefined : permissionOf('metrics:read')

  const needed = permission === undefined ? '' : `\n\nRequires the permission \`${permission}\`.`

  return {
    route: completeRoute({ method: 'GET', path: METRICS_PATH, permission, maxBodyBytes: 0 }),
    handlers: [
      async function metrics(c: Context) {
        // They count the requests of every tenant.
        const tenant = permission === undefined ? undefined : callerOf(c, 'metrics')?.tenant
        if (permission !== undefined && tenant !== undefined)
          throw new Denied({ code: 'permission_missing', permission })
        return c.body(await reading(undefined), 200, {
          ...NO_STORE,
          'Content-Type': EXPOSITION_MEDIA_TYPE,
        })
      },
    ],
    operation: {
      method: 'GET',
      path: METRICS_PATH,
      id: 'readMetrics',
      tag: 'Records',
      summary: 'Read the metrics',
      description:
        'Metrics of all gateways on this Redis, in the Prometheus text format 0.0.4. Isolates report ' +
        `every ten seconds.${needed}`,
      responses: {
        200: {
          description: 'The metrics.',
          schema: () => z.string(),
          mediaType: EXPOSITION_MEDIA_TYPE,
        },
      },
      problems: [400, 401, 403, 405, 413, 500, 503],
      ...(permission !== undefined && { security: 'operator' as const }),
    },
  }
}
