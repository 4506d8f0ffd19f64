/** Whether a token that is good by itself has been taken back. */
import { revocationKeysOf, revokedBy } from '../admission/revocation.ts'
import type { RevokedBy } from '../errors.ts'
import type { Principal } from '../tokens/principal.ts'
import { consultedSeconds } from './grant-store.ts'

/** Storage keys that say so, and what their values mean, in the same order. */
export interface RevocationQuestion {
  readonly keys: readonly string[]
  /** By what the token is revoked; undefined: it is not. */
  answer(values: readonly (string | null)[]): RevokedBy | undefined
}

/** What to ask the store about a token: its own revocation, and every cut-off that covers it. */
export async function revocationQuestion(principal: Principal): Promise<RevocationQuestion> {
  const revocation = await revocationKeysOf(principal)
  const { token, cutOffs } = revocation
  const own = token === undefined ? [] : [token]
  return {
    keys: [...own, ...cutOffs.map(({ key }) => key)],
    answer(values) {
      const tokenRevoked = token !== undefined && values[0] !== null
      const cutOffSeconds = cutOffs.map((_, index) => consultedSeconds(values[own.length + index]))
      return revokedBy(principal, revocation, { tokenRevoked, cutOffSeconds })
    },
  }
}
