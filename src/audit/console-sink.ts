/** An audit sink for a Worker without a queue. */
import type { AuditSink } from './event.ts'
import { serialiseEvent } from './truncate.ts'

/**
 * Creates a sink that writes each event as one line of JSON. Does NOT retry or store events:
 * delivery depends on the log pipeline.
 *
 * @param write Writes the line. Default `console.log`.
 */
export const consoleAuditSink = (
  write: (line: string) => void = (line) => console.log(line),
): AuditSink => ({
  record(event) {
    write(serialiseEvent(event))
  },
})
