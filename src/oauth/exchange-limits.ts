/** Limits on token exchanges, per client and per subject token. */

import { CLIENT_EXCHANGES_PREFIX, TOKEN_EXCHANGES_PREFIX } from '../redis/keys.ts'

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

/** For a client with 16 logins per second, and a user with several tabs, audiences and retries. */
export const DEFAULT_EXCHANGE_LIMITS: ExchangeLimits = {
  client: { limit: 1_000, windowSeconds: 60 },
  subjectToken: { limit: 30, windowSeconds: 600 },
}

/** A counter that a grant increments. */
export interface GrantCounter extends ExchangeLimit {
  readonly key: string
  /** Name in the audit event. */
  readonly name: string
}

/** Returns the counters of one exchange. */
export function exchangeCounters(
  { client, subjectToken }: ExchangeLimits,
  { clientId, tokenHash }: { readonly clientId: string; readonly tokenHash: string },
): readonly GrantCounter[] {
  return [
    { ...client, name: 'exchange_client', key: CLIENT_EXCHANGES_PREFIX + clientId },
    { ...subjectToken, name: 'exchange_subject_token', key: TOKEN_EXCHANGES_PREFIX + tokenHash },
  ]
}
