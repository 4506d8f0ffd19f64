/** Shows the progress of long work on one line of the terminal. */
import { visible } from './text.ts'

const INTERVAL_MS = 200

export type Progress = ReturnType<typeof createProgress>

/** Creates a line on stderr. `isShown` is false with `--json`. A file or a pipe gets no line. */
export function createProgress(isShown: boolean) {
  const stream = process.stderr
  let shownMs = Number.NEGATIVE_INFINITY
  let isPresent = false
  function show(text: string): void {
    if (!isShown || !stream.isTTY) return
    shownMs = performance.now()
    isPresent = true
    stream.write(`\r\u001b[K${visible(text)}`)
  }
  return {
    /** Shows the beginning of a step. */
    begin: show,
    /** Shows how far the step is, at most five times a second. */
    update(text: string): void {
      if (performance.now() - shownMs >= INTERVAL_MS) show(text)
    },
    /** Removes the line. */
    end(): void {
      if (isPresent) stream.write('\r\u001b[K')
      isPresent = false
    },
  }
}
