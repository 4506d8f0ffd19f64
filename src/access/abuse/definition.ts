/** The part of a policy that throttles failed authentications and sets automatic bans. */
import type { Mode } from '../../validators/mode.ts'
import type { BanScope } from './ban.ts'

export interface FailureLimit {
  /** 1 to 1,000,000. Default 20. */
  readonly limit?: number
  /** Counted from the first failure: 1 to 86,400. Default 60. */
  readonly windowSeconds?: number
  /** Default `enforce`. */
  readonly mode?: Mode
}

/** When an address or a subject is banned automatically, and for how long. */
export interface BanDefinition {
  /** Violations that lead to a ban, 1 to 1,000. Default 5. */
  readonly violations?: number
  /** Counted from the first violation: 1 to 86,400. Default 600. */
  readonly windowSeconds?: number
  /** The first ban, 1 to 31,536,000. Each further ban is twice as long. Default 3,600. */
  readonly seconds?: number
  /** The longest ban, and how long after its end a ban lengthens the next one. Default 86,400. */
  readonly maxSeconds?: number
  /** Default `enforce`. Bans that operators create are in force in both modes. */
  readonly mode?: Mode
  /**
   * What an automatic ban of an address refuses: requests with a credential, or every request, those of
   * anonymous callers to routes with limits included. Bans that operators create refuse every request.
   * Default `credentials`.
   */
  readonly refuses?: BanScope
}

export interface AbuseDefinition {
  /**
   * Bad credentials of one address in a window. After this number, further credentials are refused
   * without verification. `false`: all credentials are verified. Default `{}`.
   */
  readonly authenticationFailures?: FailureLimit | false
  /** Bans callers that are refused too often. `false`: only operators ban. Default `{}`. */
  readonly bans?: BanDefinition | false
  /** Addresses and CIDR ranges whose requests never count. Default: the loopback ranges. */
  readonly exempt?: readonly string[]
}

/** The validated definition with its defaults. */
export interface Abuse {
  readonly authenticationFailures: Required<FailureLimit> | undefined
  readonly bans: Required<BanDefinition> | undefined
  readonly exempt: readonly string[]
}

export const DEFAULT_FAILURES: Required<FailureLimit> = {
  limit: 20,
  windowSeconds: 60,
  mode: 'enforce',
}

export const DEFAULT_BANS: Required<BanDefinition> = {
  violations: 5,
  windowSeconds: 600,
  seconds: 3_600,
  maxSeconds: 86_400,
  mode: 'enforce',
  refuses: 'credentials',
}

/** Loopback: on the platform no request comes from there, in development every request does. */
export const DEFAULT_EXEMPT: readonly string[] = ['127.0.0.0/8', '::1/128']

export function resolveAbuse({
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
