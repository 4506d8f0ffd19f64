/** `token-exchange`: a login elsewhere becomes a token, or a session, of the gateway (RFC 8693). */
import { banOf, subjectBanKey } from '../admission/ban.ts'
import { Denied } from '../errors.ts'
import type { AccessGrant, Session } from '../tokens/access-grant.ts'
import type { DpopProof } from '../tokens/dpop.ts'
import { oauthRefused } from '../tokens/oauth-refusal.ts'
import type { Principal } from '../tokens/principal.ts'
import { isClientId } from '../validators/client.ts'
import { principalOfGrant } from './actor.ts'
import type { Client } from './client.ts'
import { consultedSeconds, cutOffKeysOf, issuableAtSeconds, refuseReplay } from './grant-store.ts'
import { grantedScope } from './scope.ts'
import { exchangeRequestOf, JWT, type SubjectTokenReader } from './subject-token.ts'
import { grantedAudiences } from './target.ts'
import {
  type GrantHandler,
  type GrantOptions,
  issueOptionsOf,
  type TokenRequest,
  tokenResponse,
} from './token-request.ts'
import { revocationQuestion } from './token-state.ts'

export interface TokenExchangeOptions extends GrantOptions {
  readonly readSubject: SubjectTokenReader
}

/**
 * Makes the handler. The new token speaks of the same subject, with the same roles and tenant, for the
 * client that asks. A client that may refresh gets a session with it, which lives as long as the
 * policy says. A token of the gateway itself gets a narrower one that ends no later than itself:
 * otherwise a stolen one could be exchanged for ever. Only where it belongs to no session and speaks
 * of nobody who is a client, does it begin one, as the login that it then is.
 */
export function tokenExchangeGrant(options: TokenExchangeOptions): GrantHandler {
  const { issuer, tokens, refreshTokens, readSubject, sessionSeconds, now } = options

  return async function grantInExchange(request) {
    const { client, form, identify, waitUntil } = request
    const { subjectToken, issuedType } = exchangeRequestOf(form)
    // Whoever registered the client for tokens that say nothing meant it.
    if (issuedType === JWT && client.tokenFormat !== 'jwt')
      throw oauthRefused('invalid_request', 'requested_token_type')
    const subject = await readSubject(subjectToken, waitUntil)
    identify(subject)
    refuseElsewhere(subject, client)
    const isOwn = subject.tokenIssuer === issuer
    const opensSession = client.grants.includes('refresh_token') && !(isOwn && isNoLogin(subject))
    const grant: AccessGrant = {
      ...grantOf(subject, request, options),
      subjectIssuer: subject.issuer === issuer ? undefined : subject.issuer,
      session: opensSession ? crypto.randomUUID() : isOwn ? subject.session : undefined,
    }

    const issuedAtSeconds = await consult(subject, grant, request)
    const session: Session | undefined =
      opensSession && grant.session !== undefined
        ? {
            id: grant.session,
            grant,
            startedAtSeconds: issuedAtSeconds,
            expiresAtSeconds: issuedAtSeconds + sessionSeconds,
          }
        : undefined
    const issued = await tokens.issue(grant, {
      ...issueOptionsOf(client),
      issuedAtSeconds,
      notAfterSeconds: session?.expiresAtSeconds ?? (isOwn ? subject.expiresAtSeconds : undefined),
    })
    // Last, for it lives longest: whatever fails before leaves no session that nobody can end.
    const refreshToken = session && (await refreshTokens.open(session))
    identify(principalOfGrant(grant, issuer, issued))
    return {
      ...tokenResponse(issued, grant, now()),
      issued_token_type: issuedType,
      ...(refreshToken !== undefined && { refresh_token: refreshToken }),
    }
  }

  /** One call: is the subject token still good, is its subject banned, and since when may be issued? */
  async function consult(
    subject: Principal,
    grant: AccessGrant,
    { proof }: TokenRequest,
  ): Promise<number> {
    const revocation = await revocationQuestion(subject)
    const ban = await subjectBanKey(subject.issuer, subject.subject)
    const keys = [...revocation.keys, ban, ...(await cutOffKeysOf(grant, issuer))]
    const facts = await options.store.consult({ keys, proof })
    const asked = revocation.keys.length
    const by = revocation.answer(facts.values.slice(0, asked))
    if (by !== undefined) throw oauthRefused('invalid_request', `subject_token_revoked_${by}`)
    const untilSeconds = [consultedSeconds(facts.values[asked])]
    const denial = banOf([{ by: 'subject', key: ban }], untilSeconds, now())
    if (denial !== undefined) throw new Denied(denial)
    refuseReplay(facts)
    return issuableAtSeconds(facts.values.slice(asked + 1), now())
  }
}

/**
 * A token of a session that is there, or one that a client got for itself (RFC 6749 section 4.4.3), also
 * where it was exchanged since and is another client's: the gateway vouches for a subject that is
 * written as a client's id. Who mints a token for such a subject gets no session for it either.
 */
function isNoLogin({ session, subject, client, issuer, tokenIssuer }: Principal): boolean {
  if (session !== undefined || subject === client) return true
  return issuer === tokenIssuer && isClientId(subject)
}

/** What is granted, without I/O. A bound subject token is good only with a proof by its very key. */
function grantOf(
  subject: Principal,
  { client, form, proof }: TokenRequest,
  { scopeOfRoles }: TokenExchangeOptions,
): AccessGrant {
  refuseUnbound(subject, proof)
  const { roles } = subject
  const held = subject.scopes.length > 0 ? subject.scopes : undefined
  return {
    subject: subject.subject,
    client: client.id,
    tenant: subject.tenant,
    roles,
    scopes: grantedScope(form.one('scope'), { bound: client.scopes, held, roles, scopeOfRoles }),
    audiences: grantedAudiences(form, client.audiences),
    confirmation: proof?.thumbprint,
  }
}

/**
 * A client of a tenant acts for nobody of another, or of none: a tenant's operators may make clients, and
 * whose token comes into their hands must not become a session of theirs.
 */
function refuseElsewhere({ tenant }: Principal, client: Client): void {
  if (client.tenant === undefined || client.tenant === tenant) return
  throw oauthRefused('invalid_request', 'subject_token_tenant')
}

function refuseUnbound({ confirmation }: Principal, proof: DpopProof | undefined): void {
  if (confirmation === undefined || confirmation === proof?.thumbprint) return
  throw proof === undefined
    ? oauthRefused('invalid_dpop_proof', 'dpop_missing')
    : oauthRefused('invalid_request', 'subject_token_dpop_binding')
}
