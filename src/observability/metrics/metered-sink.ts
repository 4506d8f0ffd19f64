/** An audit sink that counts the events that pass through it. */
import type { AuditSink } from '../../audit/event.ts'
import type { Reporter } from './reporter.ts'
import type { CountRequest } from './request-metrics.ts'

/**
 * Creates a sink that passes each event to `sink`, counts it, and schedules a report of the counts.
 * It passes the event first, so that an error in the metrics costs a count and not an audit event.
 */
export const meteredSink = (
  sink: AuditSink,
  count: CountRequest,
  reporter: Reporter,
): AuditSink => ({
  record(event, waitUntil) {
    sink.record(event, waitUntil)
    count(event)
    reporter.touch(waitUntil)
  },
})
