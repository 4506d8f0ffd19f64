/** Failures of the command: what is wrong, and the exit code. */

/** Exit codes; 0 is success. */
export const FAILED = 1
export const USAGE = 2
/** The status of a process that Ctrl-C ended. */
export const CANCELLED = 130

/** Ends the command. `code` is for scripts, `message` for people. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly exitCode: typeof FAILED | typeof USAGE | typeof CANCELLED
  readonly code: string

  constructor(exitCode: Failure['exitCode'], code: string, message: string) {
    super(message)
    this.exitCode = exitCode
    this.code = code
  }
}

/** Creates the failure for an invalid flag or answer. */
export function usage(message: string): Failure {
  return new Failure(USAGE, 'usage', message)
}
