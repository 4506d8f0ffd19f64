/** A Worker that audits every request over a real queue, as a gateway does. */
import { Hono } from 'hono'
import { batchingAuditSink } from '../../../src/audit/batching-sink.ts'
import type { AuditSink } from '../../../src/audit/event.ts'
import { chainQuerySchema } from '../../../src/audit/log.ts'
import { createAuditQueue, type QueueBinding } from '../../../src/audit/queue/audit-queue.ts'
import { createAuditOverflow } from '../../../src/audit/redis/overflow.ts'
import { createChainLog } from '../../../src/audit/sql/chain-log.ts'
import { d1Database } from '../../../src/audit/sql/d1/database.ts'
import { Denied } from '../../../src/errors.ts'
import { audit } from '../../../src/middleware/audit.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { answerBatch } from '../d1-client.ts'

interface ProducerEnv {
  /** For `/chain`, which answers like `GET /-/admin/audit/chain`, and for `/sql`, a client of the database. */
  readonly AUDIT_DB: D1Database
  readonly AUDIT_QUEUE: Queue
  readonly CRASH_QUEUE: Queue
  readonly OUTAGE_QUEUE: Queue
  /** The URL that `/origin` requests, as a gateway requests its origin. */
  readonly ORIGIN_URL: string
  readonly REDIS_URL: string
  readonly REDIS_TOKEN: string
}

let sink: AuditSink | undefined
/** The behavior of the queue: unchanged, or set by a test with `/mood/…`. */
let mood = 'works'

function sinkOf(env: ProducerEnv): AuditSink {
  const queue: QueueBinding = {
    sendBatch(messages) {
      if (mood === 'hangs') return new Promise(() => {})
      if (mood === 'refuses') return Promise.reject(new Error('Too Many Requests'))
      return env.AUDIT_QUEUE.sendBatch(messages)
    },
  }
  const overflow = createAuditOverflow({
    redis: createRedisRest({ url: env.REDIS_URL, token: env.REDIS_TOKEN, timeoutMs: 2_000 }),
  })
  return batchingAuditSink({
    transport: createAuditQueue({ queue, overflow, queueTimeoutMs: 200 }),
  })
}

const gateway = (env: ProducerEnv) => {
  sink ??= sinkOf(env)
  const app = new Hono<{ Bindings: ProducerEnv }>()
  app.post('/mood/:mood', (c) => {
    mood = c.req.param('mood')
    return c.body(null, 204)
  })
  app.onError((error, c) => c.text(error.name, error instanceof Denied ? 403 : 500))
  app.use(audit({ sink }))
  app.get('/ok', (c) => c.text('ok'))
  app.get('/ok/:status', (c) => c.body(null, Number(c.req.param('status')) as 200))
  app.get('/denied', () => {
    throw new Denied({ code: 'permission_missing', permission: 'orders:read' })
  })
  app.get('/origin', async (c) => {
    const answer = await fetch(c.env.ORIGIN_URL)
    return c.text(await answer.text(), 203)
  })
  return app
}

export default {
  async fetch(request, env, context) {
    const { pathname, searchParams } = new URL(request.url)
    if (pathname === '/chain') {
      const query = chainQuerySchema.parse(Object.fromEntries(searchParams))
      return Response.json(await createChainLog(d1Database(env.AUDIT_DB)).read(query))
    }
    if (pathname === '/sql') return answerBatch(env.AUDIT_DB, request)
    const queue = {
      '/raw/audit': env.AUDIT_QUEUE,
      '/raw/crash': env.CRASH_QUEUE,
      '/raw/outage': env.OUTAGE_QUEUE,
    }[pathname]
    if (queue === undefined) return gateway(env).fetch(request, env, context)
    // Directly into the queue, for duplicated, reordered and malformed messages.
    const bodies = await request.json<unknown[]>()
    for (let from = 0; from < bodies.length; from += 100)
      await queue.sendBatch(
        bodies.slice(from, from + 100).map((body) => ({ body, contentType: 'json' as const })),
      )
    return new Response(null, { status: 202 })
  },
} satisfies ExportedHandler<ProducerEnv>
