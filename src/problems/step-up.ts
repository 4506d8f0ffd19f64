/** Demands for the login of a user, and their challenge (RFC 9470 section 3). */

/** What the login of a user must be. */
export interface LoginDemand {
  /** Accepted authentication context classes (`acr`), the preferred one first. Default: any. */
  readonly acr?: readonly string[] | undefined
  /** The longest time since the login, in seconds. Default: any. */
  readonly maxAgeSeconds?: number | undefined
}

/** Returns the parameters of the challenge. The policy's check allows only values without quotation marks. */
export function stepUpParameters({ acr, maxAgeSeconds }: LoginDemand): string {
  return [
    'error="insufficient_user_authentication"',
    ...(acr === undefined ? [] : [`acr_values="${acr.join(' ')}"`]),
    ...(maxAgeSeconds === undefined ? [] : [`max_age=${maxAgeSeconds}`]),
  ].join(', ')
}

/** Returns the demand in words, for people and models: `of the kind mfa, at most 300 seconds ago`. */
export function loginInWords({ acr, maxAgeSeconds }: LoginDemand): string {
  return [
    ...(acr === undefined ? [] : [`of the kind ${acr.join(' or ')}`]),
    ...(maxAgeSeconds === undefined ? [] : [`at most ${maxAgeSeconds} seconds ago`]),
  ].join(', ')
}
