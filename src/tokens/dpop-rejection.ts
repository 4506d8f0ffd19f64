/** Refusals of DPoP proofs, with the names of the audit trail. */
import { Denied } from '../errors.ts'
import type { DpopClaims } from '../validators/dpop.ts'
import type { TokenCheck } from './rejection.ts'

/** The check of RFC 9449 section 4.3 that a proof failed. Never sent to the client. */
export type DpopCheck =
  | 'missing'
  | 'multiple'
  | 'jwk'
  /** The member or rule that makes the key unusable. */
  | `jwk_${string}`
  | keyof DpopClaims
  /** The checks that apply to every token. */
  | TokenCheck

/** Creates the refusal of a proof. `cause` is for debuggers and never leaves the process. */
export function dpopRejected(check: DpopCheck, options?: ErrorOptions): Denied {
  return new Denied({ code: 'dpop_rejected', check }, options)
}

/** Converts the refusal of a token to that of a proof. Returns any other error unchanged. */
export function asDpopRejection(error: unknown): unknown {
  if (!(error instanceof Denied) || error.denial.code !== 'token_rejected') return error
  return new Denied({ code: 'dpop_rejected', check: error.denial.check }, { cause: error })
}
