/** The part of a policy that says what is done about those who keep trying. */

/** So many in so long. */
export interface FailureLimit {
  /** 1 to 1,000,000. */
  readonly limit: number
  /** Counted from the first one on: 1 to 86,400. */
  readonly windowSeconds: number
}

/** What is done about abuse. */
export interface AbuseDefinition {
  /**
   * Credentials of one address that are refused before further ones are refused unread. Default 20
   * in 60 seconds.
   */
  readonly authenticationFailures?: FailureLimit
}

/** What holds where a policy says nothing. */
export const DEFAULT_ABUSE: Required<AbuseDefinition> = {
  authenticationFailures: { limit: 20, windowSeconds: 60 },
}
