/**
 * The audit consumer with injected failures: it dies or loses its database on the first deliveries.
 */
import type { AuditEnv, AuditMessage } from '../../../src/runtimes/cloudflare/audit-worker.ts'
import consumer from '../../../workers/audit.ts'

/** Fails like D1 during an outage. */
const lost = () => Promise.reject(new Error('D1_ERROR: Network connection lost.'))
const NO_DATABASE = {
  prepare: () => ({ bind: () => ({}) }),
  batch: lost,
} as unknown as D1Database

/** What the product may set, in seconds. Undefined: the default of the queue. */
const MAX_DELAY = 3_600
const isDelay = (seconds: number | undefined) =>
  seconds === undefined || (Number.isInteger(seconds) && seconds >= 0 && seconds <= MAX_DELAY)

/**
 * Returns the message, which comes back within a second. Here are more consumers than a deployment has: one whose
 * writes conflict with those of the others would wait 45 s in its third attempt. A message with a wrong delay is
 * lost, so that the test of its queue fails.
 */
const comingBackSoon = (message: Message): AuditMessage => ({
  id: message.id,
  timestamp: message.timestamp,
  body: message.body,
  attempts: message.attempts,
  ack: () => message.ack(),
  retry(options) {
    const seconds = options?.delaySeconds
    if (isDelay(seconds)) return message.retry({ delaySeconds: Math.min(seconds ?? 0, 1) })
    console.error(`a delay of ${seconds} s is not an integer from 0 to ${MAX_DELAY}`)
    message.ack()
  },
})

export default {
  async queue(batch, env) {
    const attempts = Math.min(...batch.messages.map((message) => message.attempts))
    const { queue } = batch
    const messages = batch.messages.map(comingBackSoon)
    if (queue === 'outage') {
      const own = attempts === 1 ? { ...env, AUDIT_DB: NO_DATABASE } : env
      await consumer.queue({ queue, messages }, own)
      return
    }
    if (attempts === 1) {
      const half = Math.ceil(messages.length / 2)
      await consumer.queue({ queue, messages: messages.slice(0, half) }, env)
      throw new Error('the consumer died with half of the batch written')
    }
    await consumer.queue({ queue, messages }, env)
    if (attempts === 2) throw new Error('the consumer died with all of the batch written')
  },
} satisfies ExportedHandler<AuditEnv>
