/** Sessions that refresh tokens extend (RFC 6749 section 6, RFC 9700 section 4.14.2). */
import { base64url } from 'jose'
import { randomBytes } from '../../crypto/random.ts'
import type { Denied } from '../../errors.ts'
import type { RefreshTokenCheck } from '../../problems/checks.ts'
import { deriveCutoffKeys, type TokenSeed } from './access-grant.ts'
import { familyEnd, type RefreshFamilies, type Session, statusOf } from './refresh-family.ts'
import {
  deriveSuccessor,
  FAMILY_BYTES,
  newNonce,
  newRefreshToken,
  parseRefreshToken,
  type RefreshToken,
} from './refresh-token.ts'
import { oauthRefused } from './rejection.ts'

export interface RefreshTokensOptions {
  readonly store: RefreshFamilies
  /** The gateway's public URL: the issuer of the sessions. */
  readonly issuer: string
  /** How long a used token is accepted again, for a retry. 0 leaves almost no time. */
  readonly graceSeconds: number
  /** Milliseconds since the epoch. */
  readonly now?: () => number
}

/** How a token is used. */
export interface UseOptions {
  /** Whether the token stays valid after the use, without a successor. */
  readonly keepsToken: boolean
}

export interface FoundSession {
  readonly session: Session
  /** Whether the token is the current one, or the previous one in its grace period. Also false if the session has ended. */
  readonly live: boolean
}

/** The result of a refresh. A retry within the grace period gets the same values. */
export interface Rotation {
  readonly refreshToken: string
  /** Pass it to `TokenIssuer.issue` unchanged, with `issuedAtSeconds`. */
  readonly seed: TokenSeed
  /** At or after the start of the session, whatever the clock says. */
  readonly issuedAtSeconds: number
}

export type RefreshTokens = ReturnType<typeof createRefreshTokens>

/**
 * Creates the refresh tokens. A refresh token is valid for one use, unless the caller keeps it. A retry
 * within the grace period gets the same successor, although only hashes are stored (see
 * `deriveSuccessor`). A later reuse means that two parties have the token, so the session ends for both.
 * A session ends when either the gateway's clock or the store's clock reaches its end.
 *
 * `inspect` and `rotate` throw `Denied` with `oauth_refused` / `invalid_grant`. All methods throw
 * `Unavailable` if the store is not available.
 */
export function createRefreshTokens({
  store,
  issuer,
  graceSeconds,
  now = () => Date.now(),
}: RefreshTokensOptions) {
  const graceMs = graceSeconds * 1000

  const endOf = (session: Session) => familyEnd(store.keys, issuer, session)

  return {
    /** Creates a refresh family and returns its first refresh token. */
    async open(session: Session): Promise<string> {
      const ttlSeconds = session.expiresAtSeconds - now() / 1000
      if (ttlSeconds <= 0) throw new RangeError('refresh tokens: the session has ended already')
      const create = () => base64url.encode(randomBytes(FAMILY_BYTES))
      const name = store.draw?.(session.grant.subject, create)
      const token = await newRefreshToken(randomBytes, name ? base64url.decode(name) : undefined)
      const family = { session, current: token.hash, previous: undefined, ended: false }
      await store.open(token.familyHash, family, ttlSeconds)
      return token.text
    },

    /** Returns the session of a token. Undefined: the token is unknown, or the time of its session is over. */
    async find(refreshToken: string): Promise<FoundSession | undefined> {
      const token = await parseRefreshToken(refreshToken)
      const family = token && (await store.find(token.familyHash))
      if (token === undefined || family === undefined) return undefined
      const { session } = family
      const nowMs = now()
      const status = statusOf(family, token.hash, { nowMs, graceMs })
      if (isExpired(session, nowMs)) return undefined
      return { session, live: status === 'current' || status === 'previous' }
    },

    /**
     * Returns the session of a live token that `client` presents, without using the token. Reuse of
     * a used token ends the family. A token of another client is refused and changes nothing.
     */
    async inspect(refreshToken: string, client: string): Promise<Session> {
      const token = await read(refreshToken)
      const family = await store.find(token.familyHash)
      if (family === undefined) throw refused('unknown')
      if (family.session.grant.client !== client) throw refused('of_another_client')
      const nowMs = now()
      const status = statusOf(family, token.hash, { nowMs, graceMs })
      if (status === 'reused' || (status === 'ended' && store.mayBeIncomplete))
        await store.end(token.familyHash, await endOf(family.session))
      if (status === 'reused' || status === 'ended') throw refused(status)
      if (isExpired(family.session, nowMs)) throw refused('expired')
      return family.session
    },

    /**
     * Uses a token and returns its successor, in one atomic step. Refuses if a revocation cutoff
     * covers the session. Reuse ends the family and, by a cutoff of the session, its access tokens.
     * With `keepsToken`, the current token is its own successor. Does NOT check the client: `inspect`
     * does.
     */
    async rotate(
      refreshToken: string,
      session: Session,
      { keepsToken }: UseOptions = { keepsToken: false },
    ): Promise<Rotation> {
      const token = await read(refreshToken)
      const nowMs = now()
      if (isExpired(session, nowMs)) throw refused('expired')
      const nonce = newNonce(randomBytes)
      const derived = await deriveSuccessor(token, nonce)
      const own = keepsToken ? { ...derived, refreshToken: token } : derived
      const { id, grant, startedAtSeconds } = session
      const reply = await store.rotate({
        familyHash: token.familyHash,
        presented: token.hash,
        successor: own.refreshToken.hash,
        nonce,
        nowMs,
        graceMs,
        // Not before the start of the session, which may be the second after a cutoff that is later
        // than `now`.
        issuedAtSeconds: Math.max(Math.floor(nowMs / 1000), startedAtSeconds),
        revokedBeforeKeys: await deriveCutoffKeys(store.keys, { ...grant, session: id }, issuer),
        startedAtSeconds,
        end: await endOf(session),
      })
      if (reply.outcome !== 'rotated' && reply.outcome !== 'replayed') throw refused(reply.outcome)
      const successor = reply.nonce === nonce ? own : await deriveSuccessor(token, reply.nonce)
      return {
        refreshToken: successor.refreshToken.text,
        seed: successor.seed,
        issuedAtSeconds: reply.issuedAtSeconds,
      }
    },

    /** Ends a token's family and the session's access tokens. Ignores an unknown token. */
    async end(refreshToken: string): Promise<void> {
      const token = await parseRefreshToken(refreshToken)
      const family = token && (await store.find(token.familyHash))
      if (token === undefined || family === undefined) return
      if (family.ended && !store.mayBeIncomplete) return
      await store.end(token.familyHash, await endOf(family.session))
    },
  }
}

async function read(text: string): Promise<RefreshToken> {
  const token = await parseRefreshToken(text)
  if (token === undefined) throw refused('malformed')
  return token
}

/** The store deletes a session at its end, but the store's clock may be late. */
function isExpired({ expiresAtSeconds }: Session, nowMs: number): boolean {
  return nowMs >= expiresAtSeconds * 1000
}

function refused(check: RefreshTokenCheck): Denied {
  return oauthRefused('invalid_grant', `refresh_token_${check}`)
}
