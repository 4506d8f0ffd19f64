/** Why a proof of possession is not good, in the words of the audit trail. */
import { Denied } from '../errors.ts'
import type { DpopClaims } from '../validators/dpop.ts'
import type { TokenCheck } from './rejection.ts'

/** The check of RFC 9449 section 4.3 that a proof failed. Never on the wire. */
export type DpopCheck =
  | 'missing'
  | 'multiple'
  | 'jwk'
  /** The member, or rule, that made the key unusable. */
  | `jwk_${string}`
  | keyof DpopClaims
  /** What a proof has in common with every other token. */
  | TokenCheck

/** The refusal of a proof. `cause` is for debuggers and never leaves the process. */
export function dpopRejected(check: DpopCheck, options?: ErrorOptions): Denied {
  return new Denied({ code: 'dpop_rejected', check }, options)
}

/** The same refusal, of a proof instead of a token; any other error as it is. */
export function asDpopRejection(error: unknown): unknown {
  if (!(error instanceof Denied) || error.denial.code !== 'token_rejected') return error
  return new Denied({ code: 'dpop_rejected', check: error.denial.check }, { cause: error })
}
