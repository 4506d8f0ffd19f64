/** Who may try to authenticate as a client, and how often they may fail. */
import type { Client } from './client.ts'
import type { AssertionUse } from './client-assertion.ts'

/** Failures of an address, as whichever clients, before it has to wait. */
export const MAX_FAILURES_PER_ADDRESS = 20
/**
 * The same of an address that has authenticated as the client lately: others behind it may fail, as
 * a client that was deployed with a wrong secret does, and not stop this one.
 */
export const MAX_FAILURES_PER_KNOWN_ADDRESS = 100
/** Failures as one client, from wherever, before addresses that it never came from have to wait. */
export const MAX_FAILURES_PER_CLIENT = 100
/** Failures are counted for so long from the first one on. */
export const FAILURE_WINDOW_SECONDS = 60
/**
 * How long an address that authenticated as a client is known as one of it, and spared the count of
 * that client's failures: whoever fails on purpose, from a thousand addresses, must not lock its
 * owner out.
 */
export const KNOWN_ADDRESS_SECONDS = 86_400

/** An attempt: as which client, from where (the normalised address). */
export interface Login {
  readonly clientId: string
  readonly address: string
}

/** Failures so far, and in how many seconds they are forgotten. */
export interface Failures {
  readonly count: number
  readonly resetSeconds: number
}

/** Values of cut-offs by their keys: whole seconds since the epoch, null: none. */
export type CutOffs = ReadonlyMap<string, string | null>

/** What is known before anything is checked. */
export interface LoginState {
  readonly client: Client | undefined
  readonly byAddress: Failures
  readonly byClient: Failures
  /** For how long the address will be known as one of this client; 0: it is not. */
  readonly knownForSeconds: number
  /** Until when the address is banned, seconds since the epoch. */
  readonly bannedUntilSeconds: number | undefined
  /** Those of the client, and of the client as a subject: a token for itself needs no more. */
  readonly cutOffs: CutOffs
}

/** Port: clients and their failures. Throws `Unavailable` when it cannot tell. */
export interface ClientLogins {
  /** Everything that decides whether an attempt may be made, and the client, in one call. */
  begin(login: Login): Promise<LoginState>
  /** Counts a failure. */
  failed(login: Login): Promise<Pick<LoginState, 'byAddress' | 'byClient'>>
  /**
   * Remembers the address, if `remember`, and the use of an assertion. False: that has been used
   * before, and nothing was remembered.
   */
  succeeded(
    login: Login,
    facts: { readonly remember: boolean; readonly use?: AssertionUse | undefined },
  ): Promise<boolean>
}

/** How long an attempt must wait; undefined: it may be made. */
export function waitSeconds({
  byAddress,
  byClient,
  knownForSeconds,
}: Pick<LoginState, 'byAddress' | 'byClient' | 'knownForSeconds'>): number | undefined {
  const isKnown = knownForSeconds > 0
  const most = isKnown ? MAX_FAILURES_PER_KNOWN_ADDRESS : MAX_FAILURES_PER_ADDRESS
  const waits = [
    byAddress.count >= most ? byAddress.resetSeconds : 0,
    byClient.count >= MAX_FAILURES_PER_CLIENT && !isKnown ? byClient.resetSeconds : 0,
  ]
  const longest = Math.max(...waits)
  return longest > 0 ? longest : undefined
}
