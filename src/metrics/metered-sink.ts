/** An audit sink that counts what passes. */
import type { AuditSink } from '../audit/event.ts'
import type { Reporter } from './reporter.ts'
import type { CountRequest } from './request-metrics.ts'

/**
 * Gives each event on to `sink`, counts it, and sees to it that the count is reported. An event is
 * given on first: what fails here costs a number, not a record.
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
