/** Keeps sessions in step with the provider: its refreshed tokens, and its logouts. */

import type { Principal } from '../../access/principal.ts'
import { REVOCATION_MARGIN_SECONDS, type Revocations } from '../../access/revocation/revocation.ts'
import { sha256 } from '../../crypto/sha256.ts'
import { Denied } from '../../errors.ts'
import { createLruMap } from '../../isolate/lru-map.ts'
import { isWithin } from '../../isolate/period.ts'
import type { LogoutToken } from './logout-token.ts'
import type { Provider, ProviderTokens } from './provider.ts'
import { signInRefused } from './refused.ts'
import type { SessionOwner, SessionStore } from './session-store.ts'
import { ownerOf, type Sessions, type SessionTerms } from './sessions.ts'

export type ProviderSessions = ReturnType<typeof createProviderSessions>

export interface ProviderSessionsOptions {
  readonly store: SessionStore
  readonly sessions: Pick<Sessions, 'end'>
  readonly revocations: Revocations
  readonly terms: Pick<SessionTerms, 'absoluteSeconds' | 'roles'>
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** At about 100 bytes an entry, 1 MB. */
const MAX_REFRESHES = 10_000
/** Longer than a call to the provider. After a failure, the next attempt is after this time. */
const RESERVED_SECONDS = 30

export function createProviderSessions({
  store,
  sessions,
  revocations,
  terms: { absoluteSeconds, roles },
  now,
}: ProviderSessionsOptions) {
  /** When this isolate last looked whether a session needs a refresh, and the pause until it looks again. */
  const looks = createLruMap<string, { readonly atMs: number; readonly pauseMs: number }>({
    max: MAX_REFRESHES,
  })
  const nowSeconds = () => Math.floor(now() / 1000)

  /** Ends all sessions of a user, or those of one session at the provider. */
  async function endSessionsOf(owner: SessionOwner, providerSession: string | undefined) {
    // All of them, also one that is being opened, or whose lane is away: its end is then recorded.
    const ids =
      providerSession === undefined
        ? await store.ids(owner)
        : (await store.list(owner))
            .filter((session) => session.providerSession === providerSession)
            .map(({ id }) => id)
    const ends = await Promise.allSettled(ids.map((id) => sessions.end(id, owner)))
    for (const outcome of ends) if (outcome.status === 'rejected') throw outcome.reason
  }

  return {
    /** Returns the ID token of a session, for the sign-out at the provider. */
    async idTokenOf({ tokenId = '' }: Principal, provider: Provider): Promise<string | undefined> {
      const tokens = await tokensIn(await store.findTokens(tokenId), tokenId, provider)
      return tokens?.idToken || undefined
    },

    /**
     * Refreshes the provider's tokens of a session, unless another request in any isolate does or has.
     * Ends the session if the provider has ended it, and takes over changed roles and tenants. Throws
     * `Unavailable`; a request half a minute later tries again.
     */
    async refresh(principal: Principal, provider: Provider): Promise<void> {
      const { tokenId: id } = principal
      const owner = ownerOf(principal)
      if (id === undefined || owner === undefined) return
      const last = looks.get(id)
      if (last !== undefined && isWithin(last.atMs, last.pauseMs, now())) return
      looks.set(id, { atMs: now(), pauseMs: RESERVED_SECONDS * 1000 })
      const sealed = await store.reserveRefresh(id, RESERVED_SECONDS)
      const tokens = await tokensIn(sealed, id, provider)
      // Reserved by another request, or encrypted with a secret that the client no longer has.
      if (tokens?.refreshToken === undefined) return
      const refreshed = await provider.refresh(tokens)
      if (refreshed === undefined) return sessions.end(id, owner)
      const seconds = Math.max(1, refreshed.refreshAtSeconds - nowSeconds())
      const text = await provider.seal.close(JSON.stringify(refreshed.tokens), id)
      await store.keepTokens(id, text, seconds)
      looks.set(id, { atMs: now(), pauseMs: seconds * 1000 })
      let user: Principal | undefined
      try {
        user = await refreshed.principal()
      } catch (error) {
        if (isNoLongerAccepted(error)) await sessions.end(id, owner)
        throw error
      }
      if (user === undefined) return
      if (user.subject !== principal.subject) return sessions.end(id, owner)
      const held = [...new Set([...user.roles, ...roles])]
      await store.changeRecord(id, (record) => ({ ...record, roles: held, tenant: user.tenant }))
    },

    /**
     * Ends the sessions that a logout token names. Throws `Denied` (`sign_in_refused`) for a token that
     * was used before, and `Unavailable`; the provider may then send the token again.
     */
    async endByProvider(
      issuer: string,
      { id, providerSubject, providerSession, expiresAtSeconds }: LogoutToken,
    ): Promise<void> {
      const hash = await sha256(JSON.stringify([issuer, id]))
      const seconds = Math.ceil(expiresAtSeconds - now() / 1000) + REVOCATION_MARGIN_SECONDS
      if (await store.isLogoutTokenUsed(hash)) throw signInRefused('logout_token_used')
      // Ends sessions of this provider session that have no entry in the list of their user, too.
      if (providerSession !== undefined)
        await revocations.revokeBefore({
          kind: 'session',
          issuer,
          value: providerSession,
          atSeconds: nowSeconds(),
          ttlSeconds: absoluteSeconds + REVOCATION_MARGIN_SECONDS,
        })
      if (providerSubject !== undefined)
        await endSessionsOf({ issuer, providerSubject }, providerSession)
      // Record the use last: the provider sends the token again if its call was lost or has failed.
      await store.useLogoutToken(hash, seconds)
    },
  }
}

/** Checks of a verified ID token: its nonce is that of another login, or rules refuse its claims. A login would fail, too. */
const RULES: readonly string[] = [
  'id_token_nonce',
  'id_token_required_claim',
  'id_token_refused_claim',
]

const isNoLongerAccepted = (error: unknown): boolean =>
  error instanceof Denied &&
  error.denial.code === 'sign_in_refused' &&
  RULES.includes(error.denial.check)

async function tokensIn(
  sealed: string | undefined,
  id: string,
  { seal }: Provider,
): Promise<ProviderTokens | undefined> {
  const text = sealed && (await seal.open(sealed, id))
  return text ? (JSON.parse(text) as ProviderTokens) : undefined
}
