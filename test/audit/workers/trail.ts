/** The audit Worker, with requests for its database, its chain, its queue and its schedules. */
import { chainQuerySchema } from '../../../src/audit/log.ts'
import { createChainLog } from '../../../src/audit/sql/chain-log.ts'
import { d1Database } from '../../../src/audit/sql/d1/database.ts'
import type { AuditEnv } from '../../../src/runtimes/cloudflare/audit-worker.ts'
import consumer from '../../../workers/audit.ts'
import { answerBatch } from '../d1-client.ts'

interface TrailEnv extends AuditEnv {
  readonly AUDIT_DB: D1Database
  readonly AUDIT_QUEUE: Queue
}

/** A request for messages of a queue takes at most so many. */
const MAX_BATCH = 100

export default {
  ...consumer,
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url)
    if (pathname === '/sql') return answerBatch(env.AUDIT_DB, request)
    if (pathname === '/chain') {
      const query = chainQuerySchema.parse(Object.fromEntries(searchParams))
      return Response.json(await createChainLog(d1Database(env.AUDIT_DB)).read(query))
    }
    if (pathname === '/cron') {
      const cron = searchParams.get('cron') ?? ''
      await consumer.scheduled({ cron, scheduledTime: Date.now() }, env)
      return new Response(null, { status: 204 })
    }
    if (pathname !== '/raw/audit') return new Response(null, { status: 404 })
    const bodies = await request.json<unknown[]>()
    for (let from = 0; from < bodies.length; from += MAX_BATCH)
      await env.AUDIT_QUEUE.sendBatch(
        bodies.slice(from, from + MAX_BATCH).map((body) => ({ body, contentType: 'json' })),
      )
    return new Response(null, { status: 202 })
  },
} satisfies ExportedHandler<TrailEnv>
