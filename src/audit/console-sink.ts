/** An audit sink for a Worker without a queue. */
import type { AuditSink } from './event.ts'
import { serialiseEvent } from './truncate.ts'

/**
 * Writes each event as one line of JSON. What becomes of the line is up to whoever reads the log:
 * nothing is retried, and nothing is kept.
 *
 * @param write Takes the line. Default `console.log`.
 */
export const consoleAuditSink = (
  write: (line: string) => void = (line) => console.log(line),
): AuditSink => ({
  record(event) {
    write(serialiseEvent(event))
  },
})
