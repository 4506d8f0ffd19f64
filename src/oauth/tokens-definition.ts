/** The part of a policy that defines how the gateway issues tokens. */
import { DEFAULT_EXCHANGE_LIMITS, type ExchangeLimits } from './exchange-limits.ts'

/** Properties of the gateway's own tokens. */
export interface TokensDefinition {
  /** Life of an access token in seconds, 300 to 3,600. Default 900. */
  readonly accessTokenSeconds?: number
  /**
   * Life of a session that starts with a login at another issuer, in seconds: 60 to 31,536,000.
   * Refreshes do not extend it. Default: the session ends with the login's own token.
   */
  readonly sessionSeconds?: number
  /** How often tokens may be exchanged. */
  readonly exchangeLimits?: Partial<ExchangeLimits>
  /**
   * How long a refresh may be retried with the refresh token that it has used, in seconds: 0 to 60.
   * Default 10.
   */
  readonly refreshGraceSeconds?: number
  /**
   * Refuses DPoP proofs without a nonce of the gateway (RFC 9449 sections 8 and 9). Default false.
   */
  readonly dpopNonceRequired?: boolean
}

/** The definition with its defaults; `sessionSeconds` has none. */
export type Tokens = Required<Omit<TokensDefinition, 'sessionSeconds' | 'exchangeLimits'>> &
  Pick<TokensDefinition, 'sessionSeconds'> & { readonly exchangeLimits: ExchangeLimits }

/** Returns the definition with defaults for missing values. */
export function tokensOf(definition: TokensDefinition = {}): Tokens {
  const exchangeLimits = { ...DEFAULT_EXCHANGE_LIMITS, ...definition.exchangeLimits }
  return { ...DEFAULT_TOKENS, ...definition, exchangeLimits }
}

export const DEFAULT_TOKENS: Tokens = {
  accessTokenSeconds: 900,
  exchangeLimits: DEFAULT_EXCHANGE_LIMITS,
  refreshGraceSeconds: 10,
  dpopNonceRequired: false,
}
