/** Failures of a command: the message and the exit code. */

/** Exit codes; 0 is success. */
export const REFUSED = 1
export const USAGE = 2
/** No response, or a response without a decision: a later call may succeed. */
export const UNDECIDED = 3
export type ExitCode = typeof REFUSED | typeof USAGE | typeof UNDECIDED

/** One finding of the gateway's input validation, from its problem document. */
export interface Finding {
  readonly in: string
  readonly path: string
  readonly message: string
}

/**
 * Ends a command. `code` is for scripts: the error code of the gateway's response, or else `usage`,
 * `gateway_unreachable`, `gateway_timeout` or `unexpected_answer`. `message` is for people, and
 * contains no credentials.
 */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly exitCode: ExitCode
  readonly code: string
  readonly requestId: string | null
  readonly findings: readonly Finding[]
  /** Seconds until a retry may succeed; null if the gateway did not specify it. */
  readonly retryAfterSeconds: number | null

  constructor(
    exitCode: ExitCode,
    code: string,
    detail: string,
    answer: {
      readonly requestId?: string | null
      readonly findings?: readonly Finding[]
      readonly retryAfterSeconds?: number | null
    } = {},
  ) {
    super(detail)
    this.exitCode = exitCode
    this.code = code
    this.requestId = answer.requestId ?? null
    this.findings = answer.findings ?? []
    this.retryAfterSeconds = answer.retryAfterSeconds ?? null
  }
}

/**
 * Creates the failure for a policy with mistakes: one finding for each. `error` is the `Misconfigured` of
 * the project's own copy of the package.
 */
export function invalidPolicy(exitCode: ExitCode, file: string, error: Error): Failure {
  const { mistakes } = error as { readonly mistakes?: readonly string[] }
  return new Failure(exitCode, 'misconfigured', `${file}: the policy is not valid`, {
    findings: (mistakes ?? [error.message]).map((message) => ({ in: '', path: '', message })),
  })
}

/** Creates the failure for incorrect usage of a command. No request was sent. */
export function usage(detail: string): Failure {
  return new Failure(USAGE, 'usage', detail)
}
