/** The part of a policy that defines how the gateway issues tokens. */
import type { TokenSource } from '../validators/token-source.ts'

/** A limit on the exchanges in a fixed window, which begins with the first exchange. */
interface ExchangeLimit {
  /** 1 to 1,000,000,000. */
  readonly limit: number
  /** 1 to 86,400. */
  readonly windowSeconds: number
}

export interface ExchangeLimits {
  /** Exchanges of one client, over all subject tokens. Default 1,000 in 60 s. */
  readonly client: ExchangeLimit
  /** Exchanges of one subject token, over all clients. Default 30 in 600 s. */
  readonly subjectToken: ExchangeLimit
}

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
  /** Seconds in which a used refresh token may be sent again as a retry, 0 to 60. Default 10. */
  readonly refreshGraceSeconds?: number
  /** Refuses DPoP proofs without the gateway's nonce (RFC 9449 sections 8 and 9). Default false. */
  readonly dpopNonceRequired?: boolean
  /** Where the gateway's own tokens and API keys are read from. Default `Authorization`. */
  readonly sources?: readonly TokenSource[]
}

/** The definition with its defaults; `sessionSeconds` and `sources` have none. */
export type Tokens = Required<
  Omit<TokensDefinition, 'sessionSeconds' | 'sources' | 'exchangeLimits'>
> &
  Pick<TokensDefinition, 'sessionSeconds' | 'sources'> & { readonly exchangeLimits: ExchangeLimits }

/** Returns the definition with defaults for missing values. */
export function tokensOf(definition: TokensDefinition = {}): Tokens {
  const exchangeLimits = { ...DEFAULT_TOKENS.exchangeLimits, ...definition.exchangeLimits }
  return { ...DEFAULT_TOKENS, ...definition, exchangeLimits }
}

export const DEFAULT_TOKENS: Tokens = {
  accessTokenSeconds: 900,
  // For a client with 16 logins per second, and a user with several tabs, audiences and retries.
  exchangeLimits: {
    client: { limit: 1_000, windowSeconds: 60 },
    subjectToken: { limit: 30, windowSeconds: 600 },
  },
  refreshGraceSeconds: 10,
  dpopNonceRequired: false,
}
