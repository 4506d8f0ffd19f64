/** The abilities of the terminal behind a stream. */
import { createColors } from 'picocolors'
import type { Style } from './text.ts'

type Stream = Pick<NodeJS.WriteStream, 'isTTY' | 'columns' | 'hasColors'>

/**
 * Reports whether to write colors. `NO_COLOR` (https://no-color.org) and `FORCE_COLOR` override what
 * the stream can show; `NO_COLOR` has priority. Without them, files and pipes have no colors.
 */
export function hasColors(stream: Stream, env: NodeJS.ProcessEnv): boolean {
  const { NO_COLOR, FORCE_COLOR } = env
  if (NO_COLOR || FORCE_COLOR === '0' || FORCE_COLOR === 'false') return false
  if (FORCE_COLOR) return true
  return stream.isTTY === true && stream.hasColors()
}

/** Returns the style of texts on a stream. */
export function styleFor(stream: Stream): Style {
  return {
    width: stream.isTTY && stream.columns > 0 ? stream.columns : Number.POSITIVE_INFINITY,
    colors: createColors(hasColors(stream, process.env)),
  }
}
