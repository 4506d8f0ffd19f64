/** Refusals of security event tokens, and their wire form (RFC 8935 section 2.3). */
import { Denied } from '../../errors.ts'
import type { FeatureProblem } from '../../problems/reasons.ts'

export const SIGNAL_REFUSED: FeatureProblem = {
  code: 'signal_refused',
  status: 400,
  title: 'Security event refused',
}

const DESCRIPTIONS = {
  invalid_request: 'The request is not a security event token that this receiver accepts.',
  invalid_key: 'The key or the algorithm of the token is not accepted.',
  invalid_issuer: 'The issuer of the token is not a transmitter of this receiver.',
  invalid_audience: 'The audience of the token is not this receiver.',
  authentication_failed: 'The transmitter is not authenticated.',
} as const

export type SignalErrorCode = keyof typeof DESCRIPTIONS

/** The codes of checks that have another one than `invalid_request`. */
const CODES: Readonly<Record<string, SignalErrorCode>> = {
  iss: 'invalid_issuer',
  aud: 'invalid_audience',
  alg: 'invalid_key',
  kid: 'invalid_key',
  kid_unknown: 'invalid_key',
  kid_missing: 'invalid_key',
  kid_duplicate: 'invalid_key',
  key_algorithm: 'invalid_key',
  signature: 'authentication_failed',
  authorization: 'authentication_failed',
}

/** Creates the refusal of an event. `check` names what failed, for the audit trail. */
export const signalRefused = (check: string, options?: ErrorOptions): Denied =>
  new Denied(
    {
      code: 'refused_by_feature',
      problem: SIGNAL_REFUSED,
      detail: DESCRIPTIONS[CODES[check] ?? 'invalid_request'],
      check,
    },
    options,
  )

/** Returns the error object of a refusal: of RFC 8935 section 2.3, and of `setErrs` in RFC 8936. */
export function setErrorOf(error: Denied): { err: SignalErrorCode; description: string } {
  const { denial } = error
  const check = denial.code === 'refused_by_feature' ? (denial.check ?? '') : ''
  const err = CODES[check] ?? 'invalid_request'
  return { err, description: DESCRIPTIONS[err] }
}
