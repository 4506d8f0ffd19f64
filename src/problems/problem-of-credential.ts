/** Problems of missing, invalid or insufficient credentials (RFC 6750 section 3). */
import type { Denial } from '../errors.ts'
import { DPOP_ALGORITHMS } from '../validators/dpop.ts'
import type { Problem } from './problem-code.ts'

/** Denials that concern the caller's credentials. */
export type CredentialDenial = Extract<
  Denial,
  {
    readonly code:
      | 'missing_token'
      | 'token_rejected'
      | 'token_revoked'
      | 'invalid_dpop_proof'
      | 'use_dpop_nonce'
      | 'oauth_refused'
      | 'permission_missing'
  }
>

/** Returns the problem for a denial of credentials. `metadata` is appended to the challenge. */
export function credentialProblem(denial: CredentialDenial, metadata: string): Problem {
  switch (denial.code) {
    case 'missing_token':
      return {
        code: 'missing_token',
        status: 401,
        title: 'Authentication required',
        detail: denial.proof
          ? 'This resource needs a token with a proof of possession.'
          : 'This resource needs a bearer token.',
        // RFC 6750 section 3.1: no error attribute if the request has no credentials.
        headers: {
          'WWW-Authenticate': denial.proof ? dpopChallenge('', metadata) : BEARER + metadata,
        },
      }
    case 'token_rejected':
    case 'token_revoked':
      // The same response for all of these, so that a caller cannot find out which check failed.
      return {
        code: 'invalid_token',
        status: 401,
        title: 'Invalid token',
        detail: 'The bearer token is not valid here.',
        headers: {
          'WWW-Authenticate': `${BEARER}, error="invalid_token"${metadata}`,
        },
      }
    case 'invalid_dpop_proof':
      return {
        code: 'invalid_dpop_proof',
        status: 401,
        title: 'Invalid DPoP proof',
        detail: 'This request needs a valid proof that its token is held by its owner.',
        headers: { 'WWW-Authenticate': dpopChallenge('invalid_dpop_proof', metadata) },
      }
    case 'use_dpop_nonce':
      return {
        code: 'use_dpop_nonce',
        status: 401,
        title: 'DPoP nonce required',
        detail: 'The DPoP proof must contain the nonce of this answer.',
        // RFC 9449 section 9.
        headers: {
          'WWW-Authenticate': dpopChallenge('use_dpop_nonce', metadata),
          'DPoP-Nonce': denial.nonce,
        },
      }
    case 'oauth_refused':
      // The OAuth routes have their own error format. This is for other routes that throw the same
      // denial.
      return {
        code: 'oauth_error',
        status: 400,
        title: 'OAuth error',
        detail: denial.error,
      }
    case 'permission_missing':
      return {
        code: 'insufficient_permission',
        status: 403,
        title: 'Insufficient permission',
        detail: `This request needs the permission ${denial.permission}.`,
        headers: {
          'WWW-Authenticate': `${BEARER}, error="insufficient_scope", scope="${denial.permission}"${metadata}`,
        },
      }
  }
}

const BEARER = 'Bearer realm="portcullis"'

/**
 * Returns a DPoP challenge (RFC 9449 section 7.1). An empty `error` means that the request has no
 * credentials.
 */
function dpopChallenge(error: string, metadata: string): string {
  const attribute = error === '' ? '' : `, error="${error}"`
  return `DPoP realm="portcullis"${attribute}, algs="${DPOP_ALGORITHMS.join(' ')}"${metadata}`
}
