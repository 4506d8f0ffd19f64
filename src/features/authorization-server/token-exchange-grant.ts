/** `token-exchange`: exchanges a subject token for a token or a session (RFC 8693). */
import { findBan, listSubjectBans } from '../../access/abuse/ban.ts'
import type { Principal } from '../../access/principal.ts'
import {
  type AccessGrant,
  deriveCutoffKeys,
  principalOfGrant,
} from '../../access/tokens/access-grant.ts'
import { oauthRefused } from '../../access/tokens/rejection.ts'
import { sha256 } from '../../crypto/sha256.ts'
import { Denied } from '../../errors.ts'
import { authorizationServerKeys } from '../../redis/keys.ts'
import { mayActFor } from './client.ts'
import { decideGrant, endOfGrant } from './decide-grant.ts'
import {
  consultedSeconds,
  issuableAtSeconds,
  refuseReplay,
  revocationLookup,
} from './grant-store.ts'
import type { AuthorizationServerOptions } from './options.ts'
import { isClientId } from './schemas/client.ts'
import { createSubjectTokenReader, JWT, parseExchangeRequest } from './subject-token.ts'
import {
  type GrantHandler,
  issueOptionsOf,
  refuseUnbound,
  type TokenRequest,
  tokenResponse,
} from './token-request.ts'

/**
 * Creates the handler. The new token has the subject, roles and tenant of the subject token, and
 * belongs to the client that sends the request. A client with the refresh grant also gets a refresh
 * token, which starts a session. Two kinds of subject tokens start no session: a token of a
 * session, which the new token joins, and a token that a client got for itself.
 *
 * Nothing lives longer than the subject token. Otherwise a stolen token could be exchanged without
 * end. The policy may set one exception: `tokens.sessionSeconds` is the life of a session that
 * starts with a login at another issuer. See docs/decisions/0051.
 */
export function tokenExchangeGrant(options: AuthorizationServerOptions): GrantHandler {
  const { issuer, tokens, refreshTokens, sessionSeconds, now } = options
  const readSubject = createSubjectTokenReader(options)

  return async function exchangeToken(request) {
    const { client, form, identify, waitUntil } = request
    const { subjectToken, issuedType } = parseExchangeRequest(form)
    // A client that is registered for opaque tokens gets no JWTs.
    if (issuedType === JWT && client.tokenFormat !== 'jwt')
      throw oauthRefused('invalid_request', 'requested_token_type')
    const subject = await readSubject(subjectToken, waitUntil)
    identify(subject)
    if (!mayActFor(client, subject, options.tenantIssuers))
      throw oauthRefused('invalid_request', 'subject_token_tenant')
    const isOwn = subject.tokenIssuer === issuer
    const opensSession =
      client.grants.includes('refresh_token') && !(isOwn && cannotStartSession(subject))
    const newSession = opensSession ? crypto.randomUUID() : undefined
    const session = newSession ?? (isOwn ? subject.session : undefined)
    const grant = { ...computeGrant(subject, request, options), session }

    const issuedAtSeconds = await consult(subject, grant, request)
    const expiresAtSeconds = endOfGrant(
      { ...subject, isOwn },
      opensSession ? issuedAtSeconds : undefined,
      sessionSeconds,
    )
    if (expiresAtSeconds <= issuedAtSeconds)
      throw oauthRefused('invalid_request', 'subject_token_exp')
    const issued = await tokens.issue(grant, {
      ...issueOptionsOf(client),
      issuedAtSeconds,
      notAfterSeconds: expiresAtSeconds,
    })
    // Last, because a session lives longest. A failure before this step leaves no session that no
    // client can end.
    const refreshToken =
      newSession &&
      (await refreshTokens.open({
        id: newSession,
        grant,
        startedAtSeconds: issuedAtSeconds,
        expiresAtSeconds,
      }))
    identify(principalOfGrant(grant, issuer, issued))
    return {
      ...tokenResponse(issued, grant, now()),
      issued_token_type: issuedType,
      ...(refreshToken !== undefined && { refresh_token: refreshToken }),
    }
  }

  /**
   * Checks in one call to Redis that the subject token is not revoked and its subject is not
   * banned, and counts the exchange. Returns the earliest `iat` of the new token, in seconds.
   */
  async function consult(
    subject: Principal,
    grant: AccessGrant,
    { client, proof }: TokenRequest,
  ): Promise<number> {
    const { keys: names } = options.store
    const { clientExchanges, tokenExchanges } = authorizationServerKeys(names)
    const revocation = await revocationLookup(names, subject)
    const bans = await listSubjectBans(names, subject)
    const keys = [
      ...revocation.keys,
      ...bans.map(({ key }) => key),
      ...(await deriveCutoffKeys(names, grant, issuer)),
    ]
    const byClient = clientExchanges + client.id
    const byToken = tokenExchanges + (await sha256(revocation.identity))
    const limits = options.exchangeLimits
    const counters = [
      { ...limits.client, name: 'exchange_client', key: byClient },
      { ...limits.subjectToken, name: 'exchange_subject_token', key: byToken },
    ]
    const facts = await options.store.consult({
      keys,
      subject: subject.subject,
      proof,
      counters,
    })
    const ownKeys = revocation.keys.length
    const by = revocation.revokedBy(facts.values.slice(0, ownKeys))
    if (by !== undefined) throw oauthRefused('invalid_request', `subject_token_revoked_${by}`)
    const cutoffsFrom = ownKeys + bans.length
    const untilSeconds = facts.values.slice(ownKeys, cutoffsFrom).map(consultedSeconds)
    const denial = findBan(bans, untilSeconds, now())
    if (denial !== undefined) throw new Denied(denial)
    if (facts.exhausted !== undefined)
      throw new Denied({ code: 'rate_limited', ...facts.exhausted })
    refuseReplay(facts)
    return issuableAtSeconds(facts.values.slice(cutoffsFrom), now())
  }
}

/**
 * Reports whether a subject token of the gateway belongs to a session, or a client got it for itself
 * (RFC 6749 section 4.4.3). In the second case it may have been exchanged since, and belong to
 * another client: the gateway vouches for a subject with the form of a client id.
 */
function cannotStartSession({ session, subject, client, issuer, tokenIssuer }: Principal): boolean {
  if (session !== undefined || subject === client) return true
  return issuer === tokenIssuer && isClientId(subject)
}

/** Computes the grant. No I/O. A bound subject token requires a proof by the same key. */
function computeGrant(
  subject: Principal,
  { client, form, proof }: TokenRequest,
  options: AuthorizationServerOptions,
): AccessGrant {
  refuseUnbound(subject, proof, 'invalid_request', 'subject_token_dpop_binding')
  const { issuer } = options
  const { roles, tokenIssuer } = subject
  // The audience of another issuer's token is the gateway, whatever its names are.
  const audiences = tokenIssuer === issuer ? (subject.audiences ?? []) : undefined
  const basis = { audiences, scopes: options.scopesHeldBy(subject), roles }
  return {
    subject: subject.subject,
    subjectIssuer: subject.issuer === issuer ? undefined : subject.issuer,
    client: client.id,
    tenant: subject.tenant,
    roles,
    ...decideGrant(options, basis, client, { form, scope: form.one('scope') }),
    confirmation: proof?.thumbprint,
    login: subject.login,
  }
}
