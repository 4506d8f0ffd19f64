/** Checks whether a valid token has been revoked. */

import type { RevokedBy } from '../errors.ts'
import type { Principal } from '../identity/principal.ts'
import { revocationKeysOf, revokedBy } from '../revocation/revocation.ts'
import { consultedSeconds } from './grant-store.ts'

/** The storage keys to read for a token, and the decision about their values, in the same order. */
export interface RevocationLookup {
  readonly keys: readonly string[]
  /**
   * The same for every encoding of the token. If the token has an id, no other token has this
   * identity.
   */
  readonly identity: string
  /** Returns what revoked the token, or undefined if the token is not revoked. */
  revokedBy(values: readonly (string | null)[]): RevokedBy | undefined
}

/**
 * Returns the keys to read for a token: its own revocation, and every revocation cutoff that covers
 * it.
 */
export async function revocationLookup(principal: Principal): Promise<RevocationLookup> {
  const revocation = await revocationKeysOf(principal)
  const { token, revokedBefore } = revocation
  const own = token === undefined ? [] : [token]
  return {
    identity: revocation.memory,
    keys: [...own, ...revokedBefore.map(({ key }) => key)],
    revokedBy(values) {
      const tokenRevoked = token !== undefined && values[0] !== null
      const revokedBeforeSeconds = revokedBefore.map((_, index) =>
        consultedSeconds(values[own.length + index]),
      )
      return revokedBy(principal, revocation, { tokenRevoked, revokedBeforeSeconds })
    },
  }
}
