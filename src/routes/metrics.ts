/** The metrics, for Prometheus. */
import type { Context } from 'hono'
import * as z from 'zod'
import type { Config } from '../config.ts'
import { EXPOSITION_MEDIA_TYPE } from '../metrics/exposition.ts'
import type { AdminCall } from './admin/call.ts'
import { permissionOf } from './admin/permissions.ts'
import { ownRoute } from './own-route.ts'

export interface MetricsOptions {
  /** Everything that was counted, in the text format. */
  readonly text: () => Promise<string>
  /** Whether anyone may read them, or operators only. */
  readonly metricsAccess: Config['metricsAccess']
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Where anyone may ask, asking often must not cost more: no amplifier. */
const MEMORY_MS = 1_000
const METRICS_PATH = '/-/metrics'

/**
 * `GET /-/metrics`: what all isolates of all gateways on this Redis have counted, in the Prometheus
 * text format, whichever of them answers. An isolate keeps what it has read for a second; requests
 * that come while it reads read as well. Needs the permission `portcullis:metrics:read`, unless it
 * is public; the guards before it are those of any route.
 */
export function metricsCall({ text, metricsAccess, now }: MetricsOptions): AdminCall {
  let known: { readonly text: string; readonly untilMs: number } | undefined
  const permission = metricsAccess === 'public' ? undefined : permissionOf('metrics:read')

  const needed = permission === undefined ? '' : `\n\nNeeds the permission \`${permission}\`.`

  return {
    route: ownRoute({ method: 'GET', path: METRICS_PATH, permission, maxBodyBytes: 0 }),
    handlers: [
      async function metrics(c: Context) {
        if (known === undefined || now() >= known.untilMs)
          known = { text: await text(), untilMs: now() + MEMORY_MS }
        return c.body(known.text, 200, {
          'Content-Type': EXPOSITION_MEDIA_TYPE,
          'Cache-Control': 'no-store',
          'X-Content-Type-Options': 'nosniff',
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
        'Of all gateways on this Redis, in the Prometheus text format 0.0.4; isolates report ' +
        `every ten seconds.${needed}`,
      answers: {
        200: {
          description: 'What was counted.',
          schema: () => z.string(),
          mediaType: EXPOSITION_MEDIA_TYPE,
        },
      },
      problems: [400, 401, 403, 405, 413, 500, 503],
      ...(permission !== undefined && { security: 'operator' as const }),
    },
  }
}
