/** Failures of a command: the message and the exit code. */
import type { Misconfigured } from '../src/errors.ts'
import { type Mistake, textOf } from '../src/problems/mistake.ts'

/** Exit codes; 0 is success. */
export const REFUSED = 1
export const USAGE = 2
/** No response, or a response without a decision: a later call may succeed. */
export const UNDECIDED = 3
export type ExitCode = typeof REFUSED | typeof USAGE | typeof UNDECIDED

/** One finding of the gateway's input validation, from its problem document, or a mistake in a policy. */
export interface Finding extends Partial<Omit<Mistake, 'path'>> {
  readonly in: string
  readonly path: string
  readonly message: string
  /** Absent if the message has words of its own, and from earlier gateways. */
  readonly rule?: InputRule
}

/** A rule of a schema of the gateway. */
export interface InputRule {
  readonly code: string
  /** The type of a value with a wrong size. */
  readonly origin?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly inclusive?: boolean
  readonly exact?: boolean
  readonly divisor?: number
  readonly values?: readonly (string | number)[]
  /** The type of a value with a wrong type. */
  readonly expected?: string
  readonly isAbsent?: boolean
  readonly format?: string
  readonly pattern?: string
  readonly prefix?: string
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

/** Returns the mistakes of a `Misconfigured`, also of another copy of the package. */
export function mistakesOf(error: Error): readonly Mistake[] {
  const { found } = error as Partial<Misconfigured>
  return found ?? [{ code: 'invalid_value', path: [], message: error.message }]
}

/** Returns them with their places in the messages. */
export const findingsOf = (error: Error): readonly Finding[] =>
  mistakesOf(error).map((mistake) => ({ ...mistake, in: '', path: '', message: textOf(mistake) }))

/** Creates the failure for incorrect usage of a command. No request was sent. */
export const usage = (detail: string): Failure => new Failure(USAGE, 'usage', detail)

/** Creates a failure with the exit code of a refusal. */
export const refused = (code: string, detail: string): Failure => new Failure(REFUSED, code, detail)

/** Creates the failure of a call after which a later one may succeed. */
export const undecided = (code: string, detail: string): Failure =>
  new Failure(UNDECIDED, code, detail)
