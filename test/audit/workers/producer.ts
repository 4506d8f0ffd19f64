/** A Worker that audits every request over a real queue, as a gateway does. */
import { Hono } from 'hono'
import { batchingAuditSink } from '../../../src/audit/batching-sink.ts'
import type { AuditSink } from '../../../src/audit/event.ts'
import { Denied } from '../../../src/errors.ts'
import { audit } from '../../../src/middleware/audit.ts'
import { createAuditQueue } from '../../../src/stores/queue/audit-queue.ts'

interface ProducerEnv {
  readonly AUDIT_QUEUE: Queue
  /** Where `/slow` and `/held` ask, as a gateway asks its origin. */
  readonly ORIGIN_URL: string
}

let sink: AuditSink | undefined

const gateway = (env: ProducerEnv) => {
  sink ??= batchingAuditSink({ transport: createAuditQueue({ queue: env.AUDIT_QUEUE }) })
  const app = new Hono<{ Bindings: ProducerEnv }>()
  app.onError((error, c) => c.text(error.name, error instanceof Denied ? 403 : 500))
  app.use(audit({ sink }))
  app.get('/ok', (c) => c.text('ok'))
  app.get('/denied', () => {
    throw new Denied({ code: 'permission_missing', permission: 'orders:read' })
  })
  app.get('/origin', async (c) => {
    const answer = await fetch(c.env.ORIGIN_URL)
    return c.text(await answer.text())
  })
  return app
}

export default {
  async fetch(request, env, context) {
    const { pathname } = new URL(request.url)
    if (pathname !== '/raw') return gateway(env).fetch(request, env, context)
    // Straight into the queue: for duplicates, disorder and poison.
    const bodies = await request.json<unknown[]>()
    for (let from = 0; from < bodies.length; from += 100)
      await env.AUDIT_QUEUE.sendBatch(
        bodies.slice(from, from + 100).map((body) => ({ body, contentType: 'json' as const })),
      )
    return new Response(null, { status: 202 })
  },
} satisfies ExportedHandler<ProducerEnv>
