/** The metrics, for Prometheus. */
import type { Context } from 'hono'
import * as z from 'zod'
import type { Config } from '../config.ts'
import { Unavailable } from '../errors.ts'
import { EXPOSITION_MEDIA_TYPE } from '../metrics/exposition.ts'
import { sleep } from '../timers.ts'
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
/** Past this time whoever was reading has died with its request. */
const LEASE_MS = 3_000
/** How soon a request looks again whether another has read. */
const POLL_MS = 50
const METRICS_PATH = '/-/metrics'

/**
 * `GET /-/metrics`: what all isolates of all gateways on this Redis have counted, in the Prometheus
 * text format, whichever of them answers. An isolate reads it once a second at most, however many
 * ask at once: while one reads, others are told what was read last or, where that is old, wait.
 * Needs the permission `portcullis:metrics:read`, unless it is public; the guards before it are
 * those of any route.
 */
export function metricsCall({ text, metricsAccess, now }: MetricsOptions): AdminCall {
  const reading = createReading(text, now)
  const permission = metricsAccess === 'public' ? undefined : permissionOf('metrics:read')

  const needed = permission === undefined ? '' : `\n\nNeeds the permission \`${permission}\`.`

  return {
    route: ownRoute({ method: 'GET', path: METRICS_PATH, permission, maxBodyBytes: 0 }),
    changes: false,
    handlers: [
      async function metrics(c: Context) {
        return c.body(await reading(), 200, {
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

/** What was read last. Data, and no promise: a request may not wait for the work of another. */
interface Reading {
  readonly text?: string
  readonly failure?: Pick<Unavailable, 'dependency' | 'fault'>
  readonly untilMs: number
}

function createReading(read: () => Promise<string>, now: () => number): () => Promise<string> {
  let last: Reading = { untilMs: Number.NEGATIVE_INFINITY }
  let leaseMs = Number.NEGATIVE_INFINITY

  async function lead(): Promise<string> {
    leaseMs = now() + LEASE_MS
    try {
      const text = await read()
      last = { text, untilMs: now() + MEMORY_MS }
      return text
    } catch (error) {
      if (error instanceof Unavailable) last = { failure: error, untilMs: now() + MEMORY_MS }
      throw error
    } finally {
      leaseMs = Number.NEGATIVE_INFINITY
    }
  }

  return async function reading() {
    for (;;) {
      const { text, failure, untilMs } = last
      const isBeingRead = now() < leaseMs
      // What is older would look to Prometheus as if counters had begun anew.
      if (text !== undefined && now() < (isBeingRead ? untilMs + LEASE_MS : untilMs)) return text
      if (failure !== undefined && now() < untilMs)
        throw new Unavailable(failure.dependency, failure.fault)
      if (!isBeingRead) return lead()
      await sleep(POLL_MS)
    }
  }
}
