/** Errors that no code handles, in a server that continues to run. */
import type { Log } from './server-log.ts'

const MAX_FRAMES = 5
const FRAME = /^ {4}at .+/

/**
 * Logs uncaught exceptions and unhandled rejections from now on, and lets the process continue: one request
 * must not end the requests of all other callers. Workers do the same. Each such error is a bug. Never
 * logs the message of an error, which may contain a header or a response.
 */
export function logUncaught(log: Log): void {
  const report = (message: string) => (error: unknown) => log('error', message, detailsOf(error))
  // Until now, while the server started, an exception ended the process.
  process.removeAllListeners('uncaughtException')
  process.on('uncaughtException', report('uncaught exception'))
  process.on('unhandledRejection', report('unhandled rejection'))
}

function detailsOf(error: unknown): Readonly<Record<string, unknown>> {
  if (!(error instanceof Error)) return { error: typeof error }
  const { name, message, stack = '' } = error
  const lines = stack.slice(stack.indexOf(message) + message.length).split('\n')
  const frames = lines.filter((line) => FRAME.test(line)).slice(0, MAX_FRAMES)
  return { error: name, at: frames.map((frame) => frame.trim()) }
}
