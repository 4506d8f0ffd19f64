/** The part of a policy that says what is done about those who keep trying. */

/** So many in so long. */
export interface FailureLimit {
  /** 1 to 1,000,000. Default 20. */
  readonly limit?: number
  /** Counted from the first one on: 1 to 86,400. Default 60. */
  readonly windowSeconds?: number
}

/** When an address or a subject is banned by itself, and for how long. */
export interface BanDefinition {
  /** Violations that bring a ban, 1 to 1,000. Default 5. */
  readonly violations?: number
  /** Counted from the first one on: 1 to 86,400. Default 600. */
  readonly windowSeconds?: number
  /** The first ban, 1 to 31,536,000. The next one is twice as long, and so on. Default 3,600. */
  readonly seconds?: number
  /** The longest ban, and how long after its end one is remembered. Default 86,400. */
  readonly maxSeconds?: number
  /** Addresses and CIDR ranges that are never banned. Default none. */
  readonly never?: readonly string[]
}

/** What is done about abuse. */
export interface AbuseDefinition {
  /**
   * Credentials of one address that are refused before further ones are refused unread. Default:
   * each is looked at.
   */
  readonly authenticationFailures?: FailureLimit
  /** Bans who is refused too often. Default: nobody is banned but by operators. */
  readonly bans?: BanDefinition
}

/** A checked definition, defaults filled in. */
export interface Abuse {
  readonly authenticationFailures: Required<FailureLimit> | undefined
  readonly bans: Required<BanDefinition> | undefined
}

/** What holds of failures where a policy counts them. */
export const DEFAULT_FAILURES: Required<FailureLimit> = { limit: 20, windowSeconds: 60 }

/** What holds of bans where a policy has some. */
export const DEFAULT_BANS: Required<BanDefinition> = {
  violations: 5,
  windowSeconds: 600,
  seconds: 3_600,
  maxSeconds: 86_400,
  never: [],
}

/** Fills in the defaults. */
export function abuseOf({ authenticationFailures, bans }: AbuseDefinition = {}): Abuse {
  return {
    authenticationFailures: authenticationFailures && {
      ...DEFAULT_FAILURES,
      ...authenticationFailures,
    },
    bans: bans === undefined ? undefined : { ...DEFAULT_BANS, ...bans },
  }
}
