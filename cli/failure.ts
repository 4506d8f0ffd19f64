/** How a command fails: what it says, and what its process ends with. */

/** Exit codes; 0 is success. */
export const REFUSED = 1
export const USAGE = 2
/** No answer, or none that decides: the same call may be answered otherwise later. */
export const UNDECIDED = 3
export type ExitCode = typeof REFUSED | typeof USAGE | typeof UNDECIDED

/** A finding of the gateway's validation, as its problem document tells it. */
export interface Finding {
  readonly in: string
  readonly path: string
  readonly message: string
}

/**
 * Ends a command. `code` is for scripts: the gateway's own wherever it answered, otherwise `usage`,
 * `gateway_unreachable`, `gateway_timeout` or `unexpected_answer`. `message` is for people, and holds
 * no credential.
 */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly exitCode: ExitCode
  readonly code: string
  readonly requestId: string | null
  readonly findings: readonly Finding[]
  /** When asking again may be answered otherwise; null where the gateway did not say. */
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

/** The command was called in a way that makes no sense; nothing was sent. */
export function usage(detail: string): Failure {
  return new Failure(USAGE, 'usage', detail)
}
