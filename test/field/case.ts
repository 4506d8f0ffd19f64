/** The form of a case from the field. */
import type { JWK } from 'jose'
import type { FieldGateway } from './gateway.ts'
import type { RuntimeName } from './runtimes.ts'

/** A fault that users of comparable products reported, and the right result. */
export interface FieldCase {
  /** What users saw, in our words. It is the name of the test, so it is unique. */
  readonly symptom: string
  /** Public reports as `owner/repository#number`, or `own` for a case without a public report. */
  readonly sources: readonly string[]
  /** The right result, with the rule that demands it if there is one. */
  readonly expected: string
  /** The gateways that the case is tried on. */
  readonly runtimes: readonly RuntimeName[]
  /** What proves the result. */
  readonly proof: Check | Proofs
}

/** An issuer of tokens, whose key set the gateway downloads. */
export interface IssuerOfCase {
  readonly issuer: string
  readonly keys: readonly JWK[]
  /** Text in front of the key set. Default: none. */
  readonly before?: string
  /** Fields of the variable `ISSUERS`, besides `issuer`, `audience` and `jwksUri`. */
  readonly settings: object
}

/** A check against a running gateway. */
export interface Check {
  /** Issuers of the case. No other case has issuers of their names. */
  readonly issuers?: readonly IssuerOfCase[]
  /** Variables of the environment, in place of those of every gateway of the table. */
  readonly variables?: Readonly<Record<string, string>>
  /** Fails if the result is not the expected one. */
  readonly run: (gateway: FieldGateway) => Promise<void>
}

/** Tests elsewhere. They need more than one gateway in front of one origin. */
export interface Proofs {
  /** Each is a path below the root, ` > `, and text of the test's name. */
  readonly tests: readonly string[]
}
