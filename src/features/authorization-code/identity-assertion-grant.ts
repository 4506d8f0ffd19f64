/**
 * `jwt-bearer` with an identity assertion (draft-ietf-oauth-identity-assertion-authz-grant): the
 * identity provider of a company decides which client may act for a user, without a consent page.
 */

import type { Principal, TokenVerifier } from '../../access/principal.ts'
import { REVOCATION_MARGIN_SECONDS } from '../../access/revocation/revocation.ts'
import {
  type AccessGrant,
  deriveCutoffKeys,
  principalOfGrant,
} from '../../access/tokens/access-grant.ts'
import { readOwnMember, readPayload } from '../../access/tokens/jws.ts'
import { oauthRefused } from '../../access/tokens/rejection.ts'
import { Denied } from '../../errors.ts'
import { codeKeys } from '../../redis/keys.ts'
import { type Client, mayActFor } from '../authorization-server/client.ts'
import { decideGrant } from '../authorization-server/decide-grant.ts'
import {
  issuableAtSeconds,
  refuseReplay,
  revocationLookup,
} from '../authorization-server/grant-store.ts'
import type { AuthorizationServerOptions } from '../authorization-server/options.ts'
import { isPermission, isWithin, namesIn } from '../authorization-server/scope.ts'
import {
  type GrantHandler,
  issueOptionsOf,
  tokenResponse,
} from '../authorization-server/token-request.ts'
import type { Offer } from './offer.ts'

export const JWT_BEARER_GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
export const ID_JAG_PROFILE = 'urn:ietf:params:oauth:grant-profile:id-jag'

export interface IdentityAssertionOptions {
  /** Verifies assertions of the issuers that the policy lists, and no other token. */
  readonly assertions: Pick<TokenVerifier, 'verify'>
  readonly offer: Offer
}

/**
 * Creates the handler. The assertion must be for this server and for the client that presents it, and
 * is accepted once. The token has the permissions that the assertion, the request, the policy and the
 * user's roles all allow. There is no refresh token: the client gets a new assertion instead.
 */
export function identityAssertionGrant(
  options: AuthorizationServerOptions,
  { assertions, offer }: IdentityAssertionOptions,
): GrantHandler {
  const { issuer, tokens, store, tenantIssuers, now } = options

  async function verified(text: string | undefined, client: Client): Promise<Principal> {
    if (text === undefined) throw oauthRefused('invalid_request', 'assertion_missing')
    let user: Principal
    try {
      user = await assertions.verify(text)
    } catch (error) {
      if (!(error instanceof Denied) || error.denial.code !== 'token_rejected') throw error
      throw oauthRefused('invalid_grant', `assertion_${error.denial.check}`, { cause: error })
    }
    // Also if the issuer names audiences in another claim.
    if (![readOwnMember(readPayload(text), 'aud')].flat().includes(issuer))
      throw oauthRefused('invalid_grant', 'assertion_aud')
    // The provider has decided about one client.
    if (user.client !== client.id) throw oauthRefused('invalid_grant', 'assertion_client')
    if (user.tokenIdHash === undefined) throw oauthRefused('invalid_grant', 'assertion_jti')
    return user
  }

  return async function grantByAssertion({ client, form, proof, identify }) {
    // Anyone may present the id of a public client.
    if (client.public) throw oauthRefused('unauthorized_client', 'client_public')
    const text = form.one('assertion')
    const user = await verified(text, client)
    identify(user)
    if (!mayActFor(client, user, tenantIssuers))
      throw oauthRefused('invalid_grant', 'assertion_tenant')
    const resources = readResources(text ?? '', form.all('resource'))
    const audiences = offer.audiencesOf(resources, client)
    const requested = form.one('scope')
    // Also if the map of the issuer drops all of its scopes.
    const isLimited = user.scopes.length > 0 || namesScope(text ?? '')
    const scopes = offer
      .scopesFor(user, client, requested === undefined ? undefined : namesIn(requested), audiences)
      .filter((name) => !isLimited || isWithin(name, user.scopes.filter(isPermission)))
    if (scopes.length === 0) throw oauthRefused('invalid_scope', 'assertion_scope')
    const grant: AccessGrant = {
      subject: user.subject,
      subjectIssuer: user.issuer,
      client: client.id,
      tenant: user.tenant,
      roles: user.roles,
      ...decideGrant(options, { audiences, scopes, roles: user.roles }, undefined, {
        form: { one: form.one, all: (name) => (name === 'resource' ? resources : []) },
        scope: undefined,
      }),
      confirmation: proof?.thumbprint,
      login: user.login,
    }
    const issuedAtSeconds = await consult(user, grant, proof)
    const issued = await tokens.issue(grant, { ...issueOptionsOf(client), issuedAtSeconds })
    identify(principalOfGrant(grant, issuer, issued))
    return tokenResponse(issued, grant, now())
  }

  /** Uses the assertion. Returns the earliest `iat` of the token, in seconds. */
  async function consult(
    user: Principal,
    grant: AccessGrant,
    proof: Parameters<typeof store.consult>[0]['proof'],
  ): Promise<number> {
    const revocation = await revocationLookup(store.keys, user)
    const own = revocation.keys.length
    const keys = [...revocation.keys, ...(await deriveCutoffKeys(store.keys, grant, issuer))]
    const leftSeconds = Math.max(1, Math.ceil(user.expiresAtSeconds - now() / 1000))
    const windowSeconds = leftSeconds + REVOCATION_MARGIN_SECONDS
    const key = `${codeKeys(store.keys).oauthRequests}assertion:${user.tokenIdHash}`
    const counters = [{ name: 'assertion', key, limit: 1, windowSeconds }]
    const facts = await store.consult({ keys, subject: user.subject, proof, counters })
    const by = revocation.revokedBy(facts.values.slice(0, own))
    if (by !== undefined) throw oauthRefused('invalid_grant', `assertion_revoked_${by}`)
    if (facts.exhausted !== undefined) throw oauthRefused('invalid_grant', 'assertion_replay')
    refuseReplay(facts)
    return issuableAtSeconds(facts.values.slice(own), now())
  }
}

/** Reports whether an assertion with a verified signature has a scope. Null and empty are absent. */
function namesScope(assertion: string): boolean {
  const payload = readPayload(assertion)
  return ['scope', 'scp'].some(
    (name) => [readOwnMember(payload, name) ?? []].flat().join('') !== '',
  )
}

/**
 * Returns the resources of the token: those of the request, which the assertion must name if it
 * names any.
 */
function readResources(assertion: string, requested: readonly string[]): readonly string[] {
  // Its signature has been verified.
  const claim = readOwnMember(readPayload(assertion), 'resource')
  const named = [claim ?? []].flat().map(String)
  if (named.length > 0 && !requested.every((resource) => named.includes(resource)))
    throw oauthRefused('invalid_target', 'assertion_resource')
  return requested.length > 0 ? requested : named
}
