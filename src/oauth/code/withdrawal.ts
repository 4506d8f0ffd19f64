/** Ends what a user has allowed a client: by the user, or by an operator. */
import { REVOCATION_MARGIN_SECONDS, type Revocations } from '../../revocation/revocation.ts'
import type { Consent, Consents, User } from './consent.ts'

export interface WithdrawalOptions {
  readonly consents: Consents
  readonly revoker: Pick<Revocations, 'revokeBefore'>
  /** The gateway's public URL: the issuer of the sessions. */
  readonly issuer: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Creates the withdrawal. Throws `Unavailable` if the store fails; it can then be repeated. */
export function createWithdrawal({ consents, revoker, issuer, now }: WithdrawalOptions) {
  return {
    list: (user: User): Promise<readonly Consent[]> => consents.list(user),

    /**
     * Ends all sessions of the client for this user, with their access tokens, and forgets the
     * consent. Returns false if there was none.
     */
    async withdraw(user: User, client: string): Promise<boolean> {
      for (const { id, expiresAtSeconds } of await consents.sessions(user, client)) {
        const leftSeconds = expiresAtSeconds - now() / 1000
        if (leftSeconds <= 0) continue
        await revoker.revokeBefore({
          kind: 'session',
          issuer,
          value: id,
          atSeconds: Math.ceil(expiresAtSeconds),
          ttlSeconds: Math.ceil(leftSeconds) + REVOCATION_MARGIN_SECONDS,
        })
      }
      // Last, so that a failure before leaves the list of sessions for the next attempt.
      return consents.remove(user, client)
    },
  }
}

export type Withdrawal = ReturnType<typeof createWithdrawal>
