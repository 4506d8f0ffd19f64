/** Writes audit events to the log, without a system call for each. */
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises'
import { MAX_PENDING_BYTES } from '../../audit/batch.ts'
import { lostEvent } from '../../audit/event.ts'
import { serializeEvent } from '../../audit/truncate.ts'
import { uuidV7 } from '../../isolate/random-ids.ts'
import { oncePerTurn } from './system/once-per-turn.ts'

/** While events are not reported as lost, the log is tried again after this time. */
const REPORT_MS = 500
/** How long the end of the process waits for the log. */
const CLOSE_MS = 1_000
const CLOSE_POLL_MS = 10

/** The part of `process.stdout` that is needed. */
interface Output {
  /** Length of the text that waits, because the reader of a pipe is slower than the events. */
  readonly writableLength: number
  write(text: string, written: (error?: Error | null) => void): unknown
  listenerCount(event: 'error'): number
  once(event: 'error', listener: () => void): unknown
}

export type EventLog = ReturnType<typeof createEventLog>

/**
 * Creates a log. Lines of one turn of the event loop are one write. Lines that cannot be written, as on a full disk, are
 * lost, and end no process: without a listener, the error of a stream is an exception.
 *
 * While the reader of a pipe does not read, at most 8 MiB wait in memory. Further lines are lost. An event `audit_lost`
 * has the number of lost lines: before the next line that is written, or by itself within a second. If it
 * cannot be written either, the next one includes its number.
 */
export function createEventLog(output: Output) {
  let lost = 0
  let unreported = 0
  let writing = 0
  let timer: NodeJS.Timeout | undefined

  function lose(lines: number, reported = 0): void {
    lost += lines
    unreported += lines + reported
    if (unreported > 0) timer ??= setTimeout(report, REPORT_MS).unref()
  }

  function report(): void {
    timer = undefined
    if (unreported > 0) writeLines([])
  }

  function writeLines(lines: readonly string[]): void {
    const reported = unreported
    const nowMs = Date.now()
    const all =
      reported === 0 ? lines : [serializeEvent(lostEvent(reported, uuidV7(nowMs), nowMs)), ...lines]
    const text = `${all.map((line) => line.replace('{', '{"level":"info",')).join('\n')}\n`
    if (output.writableLength + text.length > MAX_PENDING_BYTES) {
      lose(lines.length)
      return
    }
    unreported = 0
    writing += 1
    output.write(text, (error) => {
      writing -= 1
      if (!error) return
      if (output.listenerCount('error') === 0) output.once('error', () => {})
      lose(lines.length, reported)
    })
  }

  return {
    /** Writes a line, which is a JSON object. It gets a level as all lines of the log. */
    write: oncePerTurn(writeLines),
    /** Returns the number of lines that were lost so far. */
    lost: (): number => lost,
    /** Resolves when all lines and the number of lost ones are written, or after a second. */
    async close(): Promise<void> {
      const endMs = performance.now() + CLOSE_MS
      // Lines of this turn are written at its end.
      await nextTurn()
      while ((unreported > 0 || writing > 0) && performance.now() < endMs) {
        if (writing === 0) report()
        await wait(CLOSE_POLL_MS)
      }
      clearTimeout(timer)
    },
  }
}
