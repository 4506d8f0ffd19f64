/** Writes audit events to the log, without a system call for each. */
import { oncePerTurn } from './system/once-per-turn.ts'

/** The part of `process.stdout` that is needed. */
interface Output {
  write(text: string, written: (error?: Error | null) => void): unknown
  listenerCount(event: 'error'): number
  once(event: 'error', listener: () => void): unknown
}

/**
 * Returns a function that writes lines, each a JSON object, which gets a level as all lines of the log.
 * Lines of one turn of the event loop are one write. Lines that cannot be written, as on a full disk, are lost, and
 * end no process: without a listener, the error of a stream is an exception.
 */
export const createEventLog = (output: Output): ((line: string) => void) =>
  oncePerTurn((lines) => {
    const levelled = lines.map((line: string) => line.replace('{', '{"level":"info",'))
    output.write(`${levelled.join('\n')}\n`, (error) => {
      if (error && output.listenerCount('error') === 0) output.once('error', () => {})
    })
  })
