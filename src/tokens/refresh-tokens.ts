/** Sessions that refresh tokens extend (RFC 6749 section 6, RFC 9700 section 4.14.2). */

import { type RandomBytes, randomBytes } from '../crypto/random.ts'
import type { Denied } from '../errors.ts'
import { REVOCATION_MARGIN_SECONDS } from '../revocation/revocation.ts'
import type { RefreshTokens, Session } from './access-grant.ts'
import {
  type FamilyEnd,
  type RefreshFamilies,
  type RefreshFamily,
  sessionRevokedBeforeKey,
  sessionRevokedBeforeKeys,
  standingOf,
} from './refresh-family.ts'
import {
  firstRefreshToken,
  newNonce,
  parseRefreshToken,
  type RefreshToken,
  successorOf,
} from './refresh-token.ts'
import { oauthRefused } from './rejection.ts'

export interface RefreshTokensOptions {
  readonly store: RefreshFamilies
  /** The gateway's public URL: the issuer of the sessions. */
  readonly issuer: string
  /**
   * The grace period: how long a used token is accepted again, for a retry. 0 leaves almost no
   * time.
   */
  readonly graceSeconds: number
  /** The longest life of an access token of a session. */
  readonly maxAccessTokenSeconds: number
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
  /** Default: the platform's CSPRNG. */
  readonly random?: RandomBytes
}

/**
 * Creates the refresh tokens. A refresh token is valid for one use. Its successor is an HMAC with
 * the token as the key. A retry within the grace period therefore gets the same successor, although
 * only hashes are stored. A later reuse means that two parties have the token, so the session ends
 * for both. A session ends when either the gateway's clock or the store's clock reaches its end.
 * `inspect` checks which client presents a token. `rotate` and `end` do NOT.
 */
export function createRefreshTokens({
  store,
  issuer,
  graceSeconds,
  maxAccessTokenSeconds,
  now = Date.now,
  random = randomBytes,
}: RefreshTokensOptions): RefreshTokens {
  const graceMs = graceSeconds * 1000

  /**
   * Returns a cutoff at the end of the session. It covers all tokens of the session, including
   * those that a gateway with a fast clock has yet to issue.
   */
  async function endOf(session: Session): Promise<FamilyEnd> {
    return {
      revokedBeforeKey: await sessionRevokedBeforeKey(session, issuer),
      revokedBeforeSeconds: Math.ceil(session.expiresAtSeconds),
      revokedBeforeTtlSeconds: maxAccessTokenSeconds + REVOCATION_MARGIN_SECONDS,
    }
  }

  return {
    async open(session) {
      const ttlSeconds = session.expiresAtSeconds - now() / 1000
      if (ttlSeconds <= 0) throw new RangeError('refresh tokens: the session has ended already')
      const token = await firstRefreshToken(random)
      const family = { session, current: token.hash, previous: undefined, ended: false }
      await store.open(token.familyHash, family, ttlSeconds)
      return token.text
    },

    async find(refreshToken) {
      const token = await parseRefreshToken(refreshToken)
      const family = token && (await store.find(token.familyHash))
      if (token === undefined || family === undefined) return undefined
      const { session } = family
      const nowMs = now()
      const standing = standingOf(family, token.hash, { nowMs, graceMs })
      if (standing === 'ended' || isExpired(session, nowMs)) return undefined
      return { session, live: standing !== 'reused' }
    },

    async inspect(refreshToken, client) {
      const token = await read(refreshToken)
      const family = await store.find(token.familyHash)
      if (family === undefined) throw refused('unknown')
      if (family.session.grant.client !== client) throw refused('of_another_client')
      const nowMs = now()
      const standing = standingOf(family, token.hash, { nowMs, graceMs })
      if (standing === 'reused') await store.end(token.familyHash, await endOf(family.session))
      if (standing === 'reused' || standing === 'ended') throw refused(standing)
      refuseExpired(family.session, nowMs)
      return family.session
    },

    async rotate(refreshToken, session) {
      const token = await read(refreshToken)
      const nowMs = now()
      refuseExpired(session, nowMs)
      const nonce = newNonce(random)
      const own = await successorOf(token, nonce)
      const reply = await store.rotate({
        familyHash: token.familyHash,
        presented: token.hash,
        successor: own.refreshToken.hash,
        nonce,
        nowMs,
        graceMs,
        // Not before the start of the session, which may be the second after a cutoff that is later
        // than `now`.
        issuedAtSeconds: Math.max(Math.floor(nowMs / 1000), session.startedAtSeconds),
        revokedBeforeKeys: await sessionRevokedBeforeKeys(session, issuer),
        startedAtSeconds: session.startedAtSeconds,
        end: await endOf(session),
      })
      if (reply.outcome !== 'rotated' && reply.outcome !== 'replayed') throw refused(reply.outcome)
      const successor = reply.nonce === nonce ? own : await successorOf(token, reply.nonce)
      return {
        refreshToken: successor.refreshToken.text,
        seed: successor.seed,
        issuedAtSeconds: reply.issuedAtSeconds,
      }
    },

    async end(refreshToken) {
      const token = await parseRefreshToken(refreshToken)
      if (token === undefined) return
      const family: RefreshFamily | undefined = await store.find(token.familyHash)
      if (family !== undefined) await store.end(token.familyHash, await endOf(family.session))
    },
  }
}

async function read(text: string): Promise<RefreshToken> {
  const token = await parseRefreshToken(text)
  if (token === undefined) throw refused('malformed')
  return token
}

/**
 * Refuses an expired session. The store deletes it at its end, but the store's clock may be late.
 */
function refuseExpired(session: Session, nowMs: number): void {
  if (isExpired(session, nowMs)) throw refused('expired')
}

function isExpired({ expiresAtSeconds }: Pick<Session, 'expiresAtSeconds'>, nowMs: number) {
  return nowMs >= expiresAtSeconds * 1000
}

type RefreshCheck =
  | 'malformed'
  | 'unknown'
  | 'of_another_client'
  | 'ended'
  | 'reused'
  | 'cut_off'
  | 'expired'

function refused(check: RefreshCheck): Denied {
  return oauthRefused('invalid_grant', `refresh_token_${check}`)
}
