/** Ends what a user has allowed a client: by the user, or by an operator. */

import { REVOCATION_MARGIN_SECONDS, type Revocations } from '../../access/revocation/revocation.ts'
import { Denied } from '../../errors.ts'
import {
  type Consent,
  type ConsentedSession,
  type Consents,
  holdersOf,
  type User,
} from './consent.ts'

export interface WithdrawalOptions {
  readonly consents: Consents
  readonly revoker: Pick<Revocations, 'revokeBefore'>
  /** The gateway's public URL: the issuer of the sessions. */
  readonly issuer: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Sessions of a client for a user. A withdrawal ends each by a call, and platforms limit calls. */
const MAX_SESSIONS = 40
/** Attempts of a withdrawal. The client may open sessions at the same time. */
const MAX_ATTEMPTS = 5

/** Creates the withdrawal. Throws `Unavailable` if the store fails; it can then be repeated. */
export function createWithdrawal({ consents, revoker, issuer, now }: WithdrawalOptions) {
  async function end(sessions: readonly ConsentedSession[]): Promise<void> {
    for (const { id, expiresAtSeconds } of sessions) {
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
  }

  const withdrawal = {
    list: (user: User): Promise<readonly Consent[]> => consents.list(user),

    /**
     * Ends all sessions of the client for this user, with their access tokens, and forgets the
     * consent. Returns false if there was none. Throws `Denied` (`conflict`) if the client keeps opening
     * sessions.
     */
    async withdraw(user: User, client: string): Promise<boolean> {
      // A call whose reply was lost is sent a second time, and then forgets nothing.
      const isKnown = (await consents.find(user, client)) !== undefined
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        const sessions = await consents.sessions(user, client)
        await end(sessions)
        // Last, so that a failure before leaves the list of sessions for the next attempt.
        const result = await consents.forget(user, client, sessions)
        if (result !== 'other_sessions') return isKnown || result === 'forgotten'
      }
      throw new Denied({ code: 'conflict' })
    },

    /**
     * Ends the oldest sessions of the client for this user, if there is no place for another one.
     * Returns the sessions that have ended.
     */
    async makeRoom(user: User, client: string): Promise<readonly ConsentedSession[]> {
      const sessions = await consents.sessions(user, client)
      const oldest = sessions.slice(0, Math.max(0, sessions.length - MAX_SESSIONS + 1))
      await end(oldest)
      return oldest
    },
  }

  return {
    ...withdrawal,

    /** Returns the consents that a user itself sees, the newest of each client. */
    async listOwn(user: User): Promise<readonly Consent[]> {
      const all = await Promise.all(holdersOf(user).map((holder) => consents.list(holder)))
      const sorted = all.flat().sort((a, b) => b.allowedAtSeconds - a.allowedAtSeconds)
      return [...new Map(sorted.toReversed().map((one) => [one.client, one])).values()].toReversed()
    },

    /** Withdraws a consent wherever it is stored. Returns and throws as `withdraw`. */
    async withdrawOwn(user: User, client: string): Promise<boolean> {
      let isFound = false
      for (const holder of holdersOf(user))
        if (await withdrawal.withdraw(holder, client)) isFound = true
      return isFound
    },
  }
}

export type Withdrawal = ReturnType<typeof createWithdrawal>
