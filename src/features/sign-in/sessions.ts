/** Opens, renews and ends browser sessions. */
import { base64url } from 'jose'
import type { Principal, SignInFacts } from '../../access/principal.ts'
import { REVOCATION_MARGIN_SECONDS, type Revocations } from '../../access/revocation/revocation.ts'
import { tokenIdHash } from '../../access/token-id.ts'
import {
  credentialHash,
  principalOfRecord,
  type ReferenceRecord,
} from '../../access/tokens/reference.ts'
import { MAX_CACHED_SECONDS } from '../../access/tokens/verifier.ts'
import { type RandomBytes, randomBytes } from '../../crypto/random.ts'
import { hmacSha256 } from '../../crypto/sha256.ts'
import { Unavailable } from '../../errors.ts'
import type { Login, Provider } from './provider.ts'
import { newSessionReference, sessionReference } from './session.ts'
import type { ListedSession, SessionOwner, SessionPlace, SessionStore } from './session-store.ts'

/** The lives of sessions, and how many a user may have. */
export interface SessionTerms {
  /** A session ends after this time without a request. */
  readonly idleSeconds: number
  /** A session ends this time after its login. */
  readonly absoluteSeconds: number
  /** Of one user. The oldest sessions end if there are more. */
  readonly maxSessions: number
  /** Roles of every signed-in user, in addition to those of the provider. */
  readonly roles: readonly string[]
}

/** A session in the list of its user. */
export interface ActiveSession extends Omit<ListedSession, 'renewAtSeconds'> {
  /**
   * The time of the last renewal, at any host. It is at most an eighth of the idle time earlier than the last
   * request, so that not every request writes it.
   */
  readonly activeAtSeconds: number
}

export type Sessions = ReturnType<typeof createSessions>

export interface SessionsOptions {
  readonly store: SessionStore
  readonly revocations: Revocations
  readonly terms: SessionTerms
  /** This gateway. */
  readonly audience: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly random?: RandomBytes
}

const NONCE_BYTES = 16
/** A session is renewed in this part of its idle time, so that it ends at most that much too early. */
const RENEWALS_PER_IDLE_TIME = 8
/**
 * Isolates may have cached the old reference for this time. It covers requests that the browser had
 * sent before it got the new reference.
 */
const GRACE_SECONDS = MAX_CACHED_SECONDS

export function createSessions({
  store,
  revocations,
  terms,
  audience,
  now,
  random = randomBytes,
}: SessionsOptions) {
  const { idleSeconds, absoluteSeconds, maxSessions, roles } = terms
  const nowSeconds = () => Math.floor(now() / 1000)
  const renewAfterSeconds = Math.ceil(idleSeconds / RENEWALS_PER_IDLE_TIME)

  /** Returns the times of a reference that is issued now. */
  function computeTimes(signIn: Omit<SignInFacts, 'renewAtSeconds'>, atSeconds: number) {
    return {
      expiresAtSeconds: Math.min(signIn.endsAtSeconds, atSeconds + idleSeconds),
      signIn: { ...signIn, renewAtSeconds: atSeconds + renewAfterSeconds },
    }
  }

  const draw: NonNullable<SessionStore['draw']> = (subject, create) =>
    store.draw?.(subject, create) ?? create(0)

  /** Undefined while its lane is away, too: every lane gets the revocation, so that it is recorded. */
  async function subjectOf(id: string): Promise<string | undefined> {
    try {
      return await store.subjectOf?.(id)
    } catch (error) {
      if (error instanceof Unavailable) return undefined
      throw error
    }
  }

  async function end(id: string, owner: SessionOwner): Promise<void> {
    await revocations.revokeToken({
      subject: await subjectOf(id),
      tokenIdHash: await tokenIdHash(owner.issuer, id),
      // No session lives longer. An operator may have shortened the terms since this one began.
      untilSeconds: nowSeconds() + absoluteSeconds + REVOCATION_MARGIN_SECONDS,
    })
    await store.remove(id, owner)
  }

  /** A login lasts at `PUBLIC_URL` while it is used at any host, so that a logout there ends it at all. */
  const extend = (id: string) =>
    store.changeRecord(id, (record) => {
      const { signIn, expiresAtSeconds } = record
      if (signIn === undefined || signIn.host !== undefined) return record
      const times = computeTimes(signIn, nowSeconds())
      return times.expiresAtSeconds > (expiresAtSeconds ?? 0)
        ? { ...record, expiresAtSeconds: times.expiresAtSeconds }
        : record
    })

  return {
    /** Opens a session for a login. Returns its reference, for the cookie. */
    async open(
      login: Login,
      provider: Pick<Provider, 'seal'>,
      userAgent: string | undefined,
      place: SessionPlace = {},
    ): Promise<string> {
      const { subject } = login.principal
      const id = draw(subject, () => crypto.randomUUID())
      const reference = draw(subject, () => newSessionReference(random))
      const atSeconds = nowSeconds()
      const endsAtSeconds = atSeconds + absoluteSeconds
      const { principal, providerSubject, name, facts: known, refreshAtSeconds } = login
      const { issuer } = principal
      const facts = {
        providerSubject,
        ...(name !== undefined && { name }),
        ...known,
        endsAtSeconds,
        refreshAtSeconds,
      }
      const record: ReferenceRecord = {
        kind: 'session',
        tokenId: id,
        tokenIssuer: principal.tokenIssuer,
        issuer,
        subject,
        client: principal.client,
        tenant: principal.tenant,
        session: login.providerSession,
        roles: [...new Set([...principal.roles, ...roles])],
        scopes: [],
        audiences: [audience],
        headers: principal.headers?.map(([name, value]) => [name, value]),
        issuedAtSeconds: atSeconds,
        ...computeTimes(facts, atSeconds),
      }
      const excess = await store.open(
        {
          issuer,
          providerSubject,
          id,
          referenceHash: await credentialHash(reference),
          record,
          details: {
            createdAtSeconds: atSeconds,
            userAgent,
            providerSession: login.providerSession,
          },
          place,
          tokens: await provider.seal.close(JSON.stringify(login.tokens), id),
          endsAtSeconds,
        },
        maxSessions,
      )
      for (const other of excess) await end(other, { issuer, providerSubject })
      return reference
    },

    /**
     * Opens a session at another host for a login that has one at `PUBLIC_URL`. They end together. Returns its
     * reference, and its user. Undefined: the session has ended.
     */
    async openAt(
      host: string,
      id: string,
    ): Promise<{ readonly reference: string; readonly user: Principal } | undefined> {
      const create = () => newSessionReference(random)
      // The id is in the lane of the session.
      const reference = store.draw?.(await credentialHash(id), create) ?? create()
      const record = await store.addHost({
        id,
        host,
        referenceHash: await credentialHash(reference),
        derive(known) {
          const { signIn, expiresAtSeconds } = known
          if (signIn === undefined || now() / 1000 >= (expiresAtSeconds ?? 0)) return undefined
          return { ...known, ...computeTimes({ ...signIn, host }, nowSeconds()) }
        },
      })
      if (record === undefined) return undefined
      await extend(id)
      return { reference, user: await principalOfRecord(record) }
    },

    /** Moves the end of the idle time at `PUBLIC_URL` for a request to another host. */
    async keepAlive({ tokenId, signIn }: Principal): Promise<void> {
      if (tokenId !== undefined && signIn?.host !== undefined) await extend(tokenId)
    },

    /**
     * Replaces the reference of a session, and moves the end of its idle time. Concurrent calls return
     * the same new reference. Undefined: the session has ended, or another request has renewed it.
     */
    async renew(reference: string, principal: Principal): Promise<string | undefined> {
      const { signIn, tokenId: id } = principal
      if (signIn === undefined || id === undefined) return undefined
      const derive = await hmacSha256(new TextEncoder().encode(reference))
      const seed = base64url.encode(random(NONCE_BYTES))
      const secret = await derive(seed)
      let nonce = seed
      const successor = draw(principal.subject, (attempt) => {
        if (attempt > 0) nonce = `${seed}.${attempt}`
        return sessionReference(secret, attempt)
      })
      const agreed = await store.renew({
        id,
        host: signIn.host,
        referenceHash: await credentialHash(reference),
        successorHash: await credentialHash(successor),
        nonce,
        succeed: (record) => ({
          ...record,
          ...computeTimes(record.signIn ?? signIn, nowSeconds()),
        }),
        graceSeconds: GRACE_SECONDS,
      })
      if (agreed === undefined || agreed === nonce) return agreed && successor
      // That of another request. Its attempt is stored, so that gateways need not draw alike.
      const [earlier = '', attempt] = agreed.split('.')
      return sessionReference(await derive(earlier), Number(attempt ?? 0))
    },

    /** Returns the sessions of the user of a session. */
    async list(principal: Principal): Promise<readonly ActiveSession[]> {
      const owner = ownerOf(principal)
      if (owner === undefined) return []
      return (await store.list(owner)).map(({ renewAtSeconds, ...listed }) => ({
        ...listed,
        // The idle time may have been another one at the last renewal.
        activeAtSeconds: Math.max(
          listed.createdAtSeconds,
          Math.min(renewAtSeconds - renewAfterSeconds, nowSeconds()),
        ),
      }))
    },

    /** Ends a session of an owner, in every isolate with the next request. */
    end,
  }
}

/** Undefined if the principal has no browser session. */
export function ownerOf({ tokenIssuer, signIn }: Principal): SessionOwner | undefined {
  return signIn && { issuer: tokenIssuer, providerSubject: signIn.providerSubject }
}
