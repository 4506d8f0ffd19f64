/** Reads the token of the subject that a client acts for (RFC 8693 section 2.1). */

import type { Principal } from '../../access/principal.ts'
import { classifyToken } from '../../access/tokens/credential.ts'
import { checkRecord, credentialHash, principalOfRecord } from '../../access/tokens/reference.ts'
import { oauthRefused, rejected } from '../../access/tokens/rejection.ts'
import { Denied } from '../../errors.ts'
import type { WaitUntil } from '../../isolate/after-response.ts'
import type { OAuthForm } from './form.ts'
import type { AuthorizationServerOptions } from './options.ts'

const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'
export const JWT = 'urn:ietf:params:oauth:token-type:jwt'
const ID_TOKEN = 'urn:ietf:params:oauth:token-type:id_token'

/** The issuer's entry in `ISSUERS`, not the type, decides how a subject token is verified. */
const SUBJECT_TYPES: readonly string[] = [ACCESS_TOKEN, JWT, ID_TOKEN]

/**
 * Parses the parameters of an exchange. Throws `Denied` (`invalid_request`, RFC 8693 section 2.2.2)
 * for unknown types, and for an actor token: delegation is not supported, and must not be ignored.
 */
export function parseExchangeRequest(form: OAuthForm) {
  const subjectToken = form.one('subject_token')
  const subjectType = form.one('subject_token_type')
  const issuedType = form.one('requested_token_type') ?? ACCESS_TOKEN
  if (subjectToken === undefined) throw oauthRefused('invalid_request', 'subject_token_missing')
  if (subjectType === undefined || !SUBJECT_TYPES.includes(subjectType))
    throw oauthRefused('invalid_request', 'subject_token_type')
  if (form.one('actor_token') !== undefined || form.one('actor_token_type') !== undefined)
    throw oauthRefused('invalid_request', 'actor_token')
  if (issuedType !== ACCESS_TOKEN && issuedType !== JWT)
    throw oauthRefused('invalid_request', 'requested_token_type')
  return { subjectToken, issuedType }
}

/**
 * Creates the reader. It accepts a JWT or an opaque access token that would be valid on a request
 * to the gateway. It refuses API keys, because they are not logins. Throws `Denied`
 * (`invalid_request`, as RFC 8693 section 2.2.2 requires) and `Unavailable`. Does NOT check
 * revocation, nor possession of a key.
 */
export function createSubjectTokenReader({
  verifier,
  references,
  issuer,
  now,
}: Pick<AuthorizationServerOptions, 'verifier' | 'references' | 'issuer' | 'now'>) {
  async function read(token: string, waitUntil?: WaitUntil): Promise<Principal> {
    const kind = classifyToken(token, { references: true })
    if (kind === 'jwt') return verifier.verify(token, waitUntil)
    const record =
      kind === 'opaque' ? await references.find(await credentialHash(token)) : undefined
    if (record?.kind !== 'opaque') throw rejected('reference_unknown')
    const failed = checkRecord(record, { audience: issuer, nowMs: now() })
    if (failed !== undefined) throw rejected(failed)
    return principalOfRecord(record)
  }

  return async function readSubject(token: string, waitUntil?: WaitUntil): Promise<Principal> {
    try {
      return await read(token, waitUntil)
    } catch (error) {
      if (!(error instanceof Denied) || error.denial.code !== 'token_rejected') throw error
      const check = `subject_token_${error.denial.check}` as const
      throw oauthRefused('invalid_request', check, { cause: error })
    }
  }
}
