/** Limits on failed authentications of clients, by address and by client. */
import type { Client } from './client.ts'
import type { AssertionUse } from './client-assertion.ts'

/** Failures of an address, as any client, before it must wait. */
const MAX_FAILURES_PER_ADDRESS = 20
/**
 * The same limit for an address that recently authenticated as the client. It is higher because
 * other callers at that address may fail. They must not stop this one.
 */
const MAX_FAILURES_PER_KNOWN_ADDRESS = 100
/** Failures as one client, from all addresses, before unknown addresses must wait. */
const MAX_FAILURES_PER_CLIENT = 100
/** The window of the counts. It starts with the first failure. */
export const FAILURE_WINDOW_SECONDS = 60
/**
 * How long an address that authenticated as a client is stored as known. The limit on that client's
 * failures does not apply to it. An attacker that fails on purpose from a thousand addresses
 * therefore cannot lock out the client's owner.
 */
export const KNOWN_ADDRESS_SECONDS = 86_400

/** An attempt to authenticate: the client and the normalized address. */
export interface Login {
  readonly clientId: string
  readonly address: string
}

export interface Failures {
  readonly count: number
  /** The time until the window ends. */
  readonly resetSeconds: number
}

export const NO_FAILURES: Failures = { count: 0, resetSeconds: 0 }

/** Values of revocation cutoffs by their keys: whole seconds since the epoch. Null: no cutoff. */
export type RevokedBeforeTimes = ReadonlyMap<string, string | null>

/** The stored state before anything is verified. */
export interface LoginState {
  readonly client: Client | undefined
  readonly byAddress: Failures
  readonly byClient: Failures
  /** How long the address is still known for this client. 0: it is not. */
  readonly knownForSeconds: number
  /** When the ban of the address ends, in seconds since the epoch. Undefined: no ban. */
  readonly bannedUntilSeconds: number | undefined
  /** The cutoffs of the client's own tokens, except its tenant's. */
  readonly revokedBefore: RevokedBeforeTimes
}

/** Port: clients and their failures. Throws `Unavailable` if the store cannot read or write. */
export interface ClientLogins {
  /** Returns the client and everything that decides whether an attempt is allowed, in one call. */
  begin(login: Login): Promise<LoginState>
  /** Counts a failure of the address and, with `countsClient`, of the client. */
  failed(login: Login, countsClient: boolean): Promise<Pick<LoginState, 'byAddress' | 'byClient'>>
  /** Stores the address and the assertion. Returns false if the assertion was used before. */
  succeeded(
    login: Login,
    facts: { readonly remember: boolean; readonly use?: AssertionUse | undefined },
  ): Promise<boolean>
}

/** Returns how long an attempt must wait. Undefined: it is allowed. */
export function waitSeconds({
  byAddress,
  byClient,
  knownForSeconds,
}: Pick<LoginState, 'byAddress' | 'byClient' | 'knownForSeconds'>): number | undefined {
  const isKnown = knownForSeconds > 0
  const most = isKnown ? MAX_FAILURES_PER_KNOWN_ADDRESS : MAX_FAILURES_PER_ADDRESS
  const longest = Math.max(
    byAddress.count >= most ? byAddress.resetSeconds : 0,
    byClient.count >= MAX_FAILURES_PER_CLIENT && !isKnown ? byClient.resetSeconds : 0,
  )
  return longest > 0 ? longest : undefined
}
