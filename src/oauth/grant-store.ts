/** What the store knows of a grant that is about to be made. */
import { revocationKeysOf } from '../admission/revocation.ts'
import { secondsOf } from '../admission/seconds.ts'
import { DEFAULT_CLOCK_TOLERANCE_SECONDS } from '../config.ts'
import { Denied, Unavailable } from '../errors.ts'
import type { AccessGrant } from '../tokens/access-grant.ts'
import type { DpopProof } from '../tokens/dpop.ts'
import { oauthRefused } from '../tokens/oauth-refusal.ts'
import { principalOfGrant } from './actor.ts'

/** Port: one round trip, none for a query of nothing. Throws `Unavailable` when it cannot tell. */
export interface GrantStore {
  /**
   * The values of strings, in the order of `keys`, and whether the proof is used for the first time,
   * which is remembered. True where there is no proof.
   */
  consult(query: {
    readonly keys: readonly string[]
    readonly proof?: DpopProof | undefined
  }): Promise<{ readonly values: readonly (string | null)[]; readonly proofIsNew: boolean }>
}

/** A token from the future is taken up to that. */
export const MAX_ISSUED_AHEAD_SECONDS = DEFAULT_CLOCK_TOLERANCE_SECONDS

/** Keys of the cut-offs that will cover a token of this grant. */
export async function cutOffKeysOf(grant: AccessGrant, tokenIssuer: string): Promise<string[]> {
  const { cutOffs } = await revocationKeysOf(principalOfGrant(grant, tokenIssuer))
  return cutOffs.map(({ key }) => key)
}

/**
 * The earliest `iat` that is not cut off: now, or the second after the latest cut-off. A token with
 * the second of the cut-off itself would be dead, and whoever logs in right after "end all
 * sessions" would be refused for the life of that token. Throws `Denied` (`invalid_grant`) where that
 * second is further ahead than clocks may differ.
 */
export function issuableAtSeconds(cutOffs: readonly (string | null)[], nowMs: number): number {
  const nowSeconds = Math.floor(nowMs / 1000)
  const earliest = Math.max(
    nowSeconds,
    ...cutOffs.map((value) => (consultedSeconds(value) ?? -1) + 1),
  )
  if (earliest > nowSeconds + MAX_ISSUED_AHEAD_SECONDS)
    throw oauthRefused('invalid_grant', 'cut_off')
  return earliest
}

/**
 * The second that a consulted key holds; undefined: none. Throws `Unavailable` for a value that is no
 * second, and for one that is not there: neither must read as "not cut off".
 */
export function consultedSeconds(value: string | null | undefined): number | undefined {
  if (value === undefined) throw new Unavailable('redis', 'malformed')
  return value === null ? undefined : secondsOf(value)
}

/** Throws `Denied` (`dpop_rejected`) for a proof that was used before (RFC 9449 section 11.1). */
export function refuseReplay({ proofIsNew }: { readonly proofIsNew: boolean }): void {
  if (!proofIsNew) throw new Denied({ code: 'dpop_rejected', check: 'replay' })
}
