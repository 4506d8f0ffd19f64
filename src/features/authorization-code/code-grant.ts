/** `authorization_code`: exchanges a code for the tokens of a new session (RFC 6749 section 4.1.3). */

import { revokedTokenKey } from '../../access/revocation/revocation.ts'
import {
  type AccessGrant,
  deriveCutoffKeys,
  principalOfGrant,
} from '../../access/tokens/access-grant.ts'
import { familyEnd } from '../../access/tokens/refresh-family.ts'
import { newRefreshToken } from '../../access/tokens/refresh-token.ts'
import { oauthRefused } from '../../access/tokens/rejection.ts'
import { randomBytes } from '../../crypto/random.ts'
import { sha256 } from '../../crypto/sha256.ts'
import type { Denied } from '../../errors.ts'
import type { CodeCheck } from '../../problems/checks.ts'
import { mayActFor } from '../authorization-server/client.ts'
import { decideGrant } from '../authorization-server/decide-grant.ts'
import { isCutOff } from '../authorization-server/grant-store.ts'
import type { AuthorizationServerOptions } from '../authorization-server/options.ts'
import {
  type GrantHandler,
  issueOptionsOf,
  refuseUnbound,
  type TokenRequest,
  tokenResponse,
} from '../authorization-server/token-request.ts'
import {
  type AuthorizationCode,
  type AuthorizationCodes,
  familyOfCode,
  parseCode,
} from './authorization-code.ts'

/** RFC 7636 section 4.1. */
const VERIFIER = /^[\w.~-]{43,128}$/

/**
 * Creates the handler. A code is valid for one use by its client, with its redirect URI and the
 * verifier of its challenge. A request that fails one of these checks does not use the code. A
 * second use ends the session that the first use started, with its access tokens: two parties have
 * the code (RFC 6749 section 4.1.2). A code of another client is refused and changes nothing.
 */
export function authorizationCodeGrant(
  options: AuthorizationServerOptions,
  codes: AuthorizationCodes,
): GrantHandler {
  const { issuer, tokens, store, tenantIssuers, now } = options

  return async function grantCode(request) {
    const { client, form, proof, identify } = request
    const text = form.one('code')
    if (text === undefined) throw oauthRefused('invalid_request', 'code_missing')
    const presented = await parseCode(text)
    const found = presented && (await codes.find(presented.hash))
    if (presented === undefined || found === undefined) throw refused('unknown')
    const { code, isUsed } = found
    const { session } = code
    if (session.grant.client !== client.id) throw refused('of_another_client')
    const bearer = principalOfGrant(session.grant, issuer)
    identify(bearer)
    if (!isUsed) {
      await refuseUnlessBound(code, request)
      // The policy may have changed since the user allowed it.
      if (!mayActFor(client, bearer, tenantIssuers)) throw refused('tenant')
      if (await isCutOff(store, issuer, session, proof, loginOf(code, store)))
        throw refused('cut_off')
    }
    const grant: AccessGrant = {
      ...session.grant,
      ...decideGrant(options, session.grant, undefined, { form, scope: undefined }),
      confirmation: proof?.thumbprint,
    }
    const opened = { ...session, grant: { ...session.grant, confirmation: proof?.thumbprint } }
    const family = await familyOfCode(presented, code.familyAttempt)
    const refreshToken = await newRefreshToken(randomBytes, family)
    const outcome = await codes.redeem({
      codeHash: presented.hash,
      familyHash: refreshToken.familyHash,
      code: { ...code, session: opened },
      refreshTokenHash: code.refresh ? refreshToken.hash : undefined,
      familySeconds: session.expiresAtSeconds - now() / 1000,
      revokedBeforeKeys: await deriveCutoffKeys(codes.keys, session.grant, issuer),
      end: await familyEnd(codes.keys, issuer, session),
    })
    if (outcome !== 'redeemed') throw refused(outcome)
    const issued = await tokens.issue(grant, {
      ...issueOptionsOf(client),
      issuedAtSeconds: Math.max(Math.floor(now() / 1000), session.startedAtSeconds),
      notAfterSeconds: session.expiresAtSeconds,
    })
    identify(principalOfGrant(grant, issuer, issued))
    return {
      ...tokenResponse(issued, grant, now()),
      ...(code.refresh && { refresh_token: refreshToken.text }),
    }
  }
}

/** Returns what ends the browser session of a code. */
const loginOf = (
  { browserSession, browserCutoffs }: AuthorizationCode,
  { keys }: Pick<AuthorizationServerOptions['store'], 'keys'>,
) => ({
  token: revokedTokenKey(keys, browserSession),
  cutoffs: (browserCutoffs?.names ?? []).map((name) => keys.prefix + name),
  issuedAtSeconds: browserCutoffs?.issuedAtSeconds ?? 0,
})

/** Throws `Denied` unless the request has the redirect URI, the verifier and the key of the code. */
async function refuseUnlessBound(
  { session, redirectUri, isImplied, challenge, dpopBound }: AuthorizationCode,
  { form, proof }: TokenRequest,
): Promise<void> {
  // Required only if the authorization request names it (RFC 6749 section 4.1.3).
  const named = form.one('redirect_uri') ?? (isImplied ? redirectUri : undefined)
  if (named !== redirectUri) throw refused('redirect_uri')
  const verifier = form.one('code_verifier') ?? ''
  if (!VERIFIER.test(verifier) || (await sha256(verifier)) !== challenge) throw refused('verifier')
  if (dpopBound && proof === undefined) throw oauthRefused('invalid_dpop_proof', 'dpop_missing')
  const { confirmation } = session.grant
  refuseUnbound({ confirmation }, proof, 'invalid_grant', 'code_dpop_binding')
}

function refused(check: CodeCheck): Denied {
  return oauthRefused('invalid_grant', `code_${check}`)
}
