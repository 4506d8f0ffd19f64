/**
 * The audit consumer with injected failures: it dies or loses its database on the first deliveries.
 */
import type { AuditEnv } from '../../../src/runtimes/cloudflare/audit-worker.ts'
import consumer from '../../../workers/audit.ts'

/** Fails like D1 during an outage. */
const lost = () => Promise.reject(new Error('D1_ERROR: Network connection lost.'))
const NO_DATABASE = {
  prepare: () => ({ bind: () => ({}) }),
  batch: lost,
} as unknown as D1Database

export default {
  async queue(batch, env) {
    const attempts = Math.min(...batch.messages.map((message) => message.attempts))
    if (batch.queue === 'outage') {
      await consumer.queue(batch, attempts === 1 ? { ...env, AUDIT_DB: NO_DATABASE } : env)
      return
    }
    if (attempts === 1) {
      const half = Math.ceil(batch.messages.length / 2)
      await consumer.queue(
        { ...batch, queue: batch.queue, messages: batch.messages.slice(0, half) },
        env,
      )
      throw new Error('the consumer died with half of the batch written')
    }
    await consumer.queue(batch, env)
    if (attempts === 2) throw new Error('the consumer died with all of the batch written')
  },
} satisfies ExportedHandler<AuditEnv>
