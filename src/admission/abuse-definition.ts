/** The part of a policy that says what is done about those who keep trying. */
import type { Mode } from '../validators/mode.ts'

/** So many in so long. */
export interface FailureLimit {
  /** 1 to 1,000,000. Default 20. */
  readonly limit?: number
  /** Counted from the first one on: 1 to 86,400. Default 60. */
  readonly windowSeconds?: number
  /** Default `enforce`. */
  readonly mode?: Mode
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
  /** Default `enforce`. Bans that operators order are in force in either mode. */
  readonly mode?: Mode
}

/** What is done about abuse. */
export interface AbuseDefinition {
  /**
   * Credentials of one address that are refused before further ones are refused unread; `false`:
   * each is looked at. Default `{}`.
   */
  readonly authenticationFailures?: FailureLimit | false
  /** Bans who is refused too often; `false`: nobody is banned but by operators. Default `{}`. */
  readonly bans?: BanDefinition | false
  /**
   * Addresses and CIDR ranges from where nothing is counted as a failure or a violation. Default the
   * loopback ranges.
   */
  readonly exempt?: readonly string[]
}

/** A checked definition, defaults filled in. */
export interface Abuse {
  readonly authenticationFailures: Required<FailureLimit> | undefined
  readonly bans: Required<BanDefinition> | undefined
  readonly exempt: readonly string[]
}

/** What holds of failures, but for what a policy says. */
export const DEFAULT_FAILURES: Required<FailureLimit> = {
  limit: 20,
  windowSeconds: 60,
  mode: 'enforce',
}

/** What holds of bans, but for what a policy says. */
export const DEFAULT_BANS: Required<BanDefinition> = {
  violations: 5,
  windowSeconds: 600,
  seconds: 3_600,
  maxSeconds: 86_400,
  mode: 'enforce',
}

/**
 * On the platform nobody comes from there; in development everybody does, who tries things out, and
 * every test and benchmark.
 */
export const DEFAULT_EXEMPT: readonly string[] = ['127.0.0.0/8', '::1/128']

/** Fills in the defaults. */
export function abuseOf({
  authenticationFailures = {},
  bans = {},
  exempt = DEFAULT_EXEMPT,
}: AbuseDefinition = {}): Abuse {
  return {
    authenticationFailures:
      authenticationFailures === false
        ? undefined
        : { ...DEFAULT_FAILURES, ...authenticationFailures },
    bans: bans === false ? undefined : { ...DEFAULT_BANS, ...bans },
    exempt,
  }
}
