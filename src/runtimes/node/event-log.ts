/** Writes audit events to the log, without a system call for each. */
import { MAX_PENDING_BYTES } from '../../audit/batch.ts'
import { lostEvent } from '../../audit/event.ts'
import { serializeEvent } from '../../audit/truncate.ts'
import { uuidV7 } from '../../isolate/random-ids.ts'
import { oncePerTurn } from './system/once-per-turn.ts'

/** The part of `process.stdout` that is needed. */
interface Output {
  /** Bytes that wait, because the reader of a pipe is slower than the events. */
  readonly writableLength: number
  write(text: string, written: (error?: Error | null) => void): unknown
  listenerCount(event: 'error'): number
  once(event: 'error', listener: () => void): unknown
}

/**
 * Returns a function that writes lines, each a JSON object, which gets a level as all lines of the log.
 * Lines of one turn of the event loop are one write. Lines that cannot be written, as on a full disk, are lost, and
 * end no process: without a listener, the error of a stream is an exception.
 *
 * While the reader of a pipe does not read, at most 8 MiB wait in memory. Further lines are lost, and an event
 * `audit_lost` has their number, as soon as there is room.
 */
export function createEventLog(output: Output): (line: string) => void {
  let lost = 0
  return oncePerTurn((lines) => {
    if (output.writableLength >= MAX_PENDING_BYTES) {
      lost += lines.length
      return
    }
    const nowMs = Date.now()
    const all =
      lost === 0 ? lines : [serializeEvent(lostEvent(lost, uuidV7(nowMs), nowMs)), ...lines]
    lost = 0
    const levelled = all.map((line: string) => line.replace('{', '{"level":"info",'))
    output.write(`${levelled.join('\n')}\n`, (error) => {
      if (error && output.listenerCount('error') === 0) output.once('error', () => {})
    })
  })
}
