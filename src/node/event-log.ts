/** Writes audit events to the log, without a system call for each. */
import { oncePerTurn } from './event-loop/once-per-turn.ts'

/** The part of `process.stdout` that is needed. */
interface Output {
  write(text: string): unknown
}

/** Returns a function that writes lines. Lines of one turn of the event loop are one write. */
export const createEventLog = (output: Output): ((line: string) => void) =>
  oncePerTurn((lines) => output.write(`${lines.join('\n')}\n`))
